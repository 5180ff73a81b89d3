"""Runs behind token buckets: the time from the first request to the last reply, divided by the ideal.

`python benchmarks/rate_limits.py` makes ten runs and prints a table. The ideal is cases ÷ rate, without the burst.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from bucket_server import Bucket, BucketServer  # noqa: E402

UNLIMITED = Bucket(10_000, 10_000)
COLUMNS = "{:<8} {:>6} {:>6} {:>12} {:>8} {:>10} {:>8} {:>8} {:>7} {:>7}"


class Setup(NamedTuple):
    """Who is behind the bucket, and how the run is made."""

    who: str
    bucket: Bucket
    cases: int = 100
    how: tuple[str, ...] = ()


SETUPS = (
    Setup("system", Bucket(5, 5)),
    Setup("system", Bucket(5, 5, "seconds")),
    Setup("system", Bucket(5, 1)),
    Setup("system", Bucket(20, 10), 300),
    Setup("system", Bucket(50, 20, "seconds"), 500),
    Setup("judge", Bucket(5, 5)),
    Setup("judge", Bucket(5, 5, "seconds")),
    Setup("judge", Bucket(5, 1, "seconds")),
    Setup("judge", Bucket(20, 10, "nonsense", latency=0.5), 300),
    Setup("judge", Bucket(10, 5), 100, ("-n", "2")),
)


def main() -> None:
    """Run all setups and print a line for each."""
    print(COLUMNS.format("bucket", "rate", "burst", "Retry-After", "cases", "run", "ideal s", "span s", "÷", "refused"))
    for setup in SETUPS:
        print(_measured(setup), flush=True)


def _measured(setup: Setup) -> str:
    buckets = (setup.bucket, UNLIMITED) if setup.who == "system" else (UNLIMITED, setup.bucket)
    with tempfile.TemporaryDirectory() as folder, BucketServer(*buckets) as server:
        _write_project(Path(folder), server.url, setup.cases)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "rageval", "-p", "xdist", *setup.how]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
        tap = server.asked if setup.who == "system" else server.judged
    ideal = setup.cases / setup.bucket.rate
    span = tap.last - tap.first
    bucket = setup.bucket
    figures = (f"{ideal:.1f}", f"{span:.1f}", f"{span / ideal:.2f}", tap.refused)
    how = " ".join(setup.how) or "alone"
    return COLUMNS.format(setup.who, bucket.rate, bucket.burst, bucket.retry_after, setup.cases, how, *figures)


def _write_project(folder: Path, url: str, cases: int) -> None:
    table = (
        f'[tool.rageval]\ntarget = "{url}"\njudge = "openai:judge-1@{url}/v1"\njudge_cache = "off"\n'
        'metrics.enabled = ["retrieval", "groundedness"]\n'
    )
    (folder / "pyproject.toml").write_text(table, encoding="utf-8")
    (folder / "evalcases").mkdir()
    lines = (json.dumps({"id": f"q{number}", "question": f"Question {number}?"} | GOLD) for number in range(cases))
    (folder / "evalcases" / "cases.jsonl").write_text("\n".join(lines), encoding="utf-8")


GOLD = {
    "category": "factual",
    "gold_supports": [{"rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling"}],
}


if __name__ == "__main__":
    main()
