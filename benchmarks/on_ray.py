"""What one and two workers of a Ray cluster on this machine add: cases a second, and where the CPU goes.

`python benchmarks/on_ray.py [CASES] [ROUNDS]`, with the extra `ray`; in no table, since it needs Ray. Time counts from
the first block of records to the last, so that neither Ray's start nor the reports are in it.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pytest_rageval.cases.loading import load_file
from pytest_rageval.config.project import Project
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.run.ongoing_run import OngoingRun
from pytest_rageval.run.prepare import prepare, run_configuration
from pytest_rageval.runs.run_files import put_in_order
from pytest_rageval.scale.dispatch import ClusterRun
from pytest_rageval.scale.ray_cluster import RayCluster

ASKED = 400
"""Cases with a call of 200 ms."""
RECORDED = 'target = "answers:answers.jsonl"'
IN_FLIGHT = 8
"""Calls at once of each worker."""
CHUNK = {
    "chunk_id": "c",
    "rel_path": "water.md",
    "heading_path": "# Water",
    "text": "Water boils at 100 degrees. " * 12,
}
WAITING = """
import asyncio, json
CHUNK = json.loads({chunk!r})
async def answer(question):
    await asyncio.sleep(0.2)
    return {{"answer": "At 100 degrees.", "retrieved_chunks": [CHUNK] * 5}}
"""


class Figures(NamedTuple):
    """Of one run; CPU in ms a case."""

    cases_a_second: float
    driver_ms: float
    worker_ms: float
    ordering_ms: float
    kilobytes: float


def write_project(root: Path, cases: int, table: str) -> None:
    (root / "evalcases").mkdir()
    lines = (
        {"id": f"q{n}", "question": "When does water boil?", "gold": {"answer": "At 100 degrees."},
         "gold_supports": [{"rel_path": "water.md"}]}
        for n in range(cases)
    )  # fmt: skip
    (root / "evalcases/a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    answers = ({"id": f"q{n}", "answer": "At 100 degrees.", "retrieved_chunks": [CHUNK] * 5} for n in range(cases))
    (root / "answers.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    (root / "waiting.py").write_text(WAITING.format(chunk=json.dumps(CHUNK)))
    (root / "pyproject.toml").write_text(f"[tool.rageval]\n{table}\n")


def cpu_of_workers() -> float:
    """Seconds of all processes of this machine that are workers of ours."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        if "ray::RayWorker" in name:
            total += sum(map(int, rest.split()[11:13]))
    return total / os.sysconf("SC_CLK_TCK")


def measured(root: Path, cluster: RayCluster, workers: int) -> Figures:
    """One run with so many workers."""
    project = Project(root, load_settings(root, {"concurrency": str(IN_FLIGHT * workers)}))
    prepared = prepare(project)
    cases = load_file(root / "evalcases/a.jsonl", root).cases
    run = OngoingRun.open(prepared, run_configuration(prepared, cases, [root / "evalcases/a.jsonl"]))
    crew = cluster.crew(prepared, run.config_hash)
    marks = list(marked(ClusterRun(run, cases, crew, workers)))
    crew.close()
    run.close()
    before = time.process_time()
    put_in_order(run.writer.folder.path)
    ordering = time.process_time() - before
    size = sum((run.writer.folder.path / f"{name}.jsonl").stat().st_size for name in ("results", "observations"))
    (first, done, driver, worker), (last, _, driver_end, worker_end) = marks[0], marks[-1]
    count = len(cases) - done
    return Figures(
        count / (last - first), (driver_end - driver) * 1000 / count, (worker_end - worker) * 1000 / count,
        ordering * 1000 / len(cases), size / len(cases) / 1000,
    )  # fmt: skip


def marked(cluster_run: ClusterRun) -> Iterator[tuple[float, int, float, float]]:
    """At the first block and the last: time, cases so far, CPU of this process, CPU of the workers."""
    done, is_first = 0, True
    for block in cluster_run.blocks():
        if block is not None:
            done += block.cases
            if is_first:
                is_first = False
                yield time.perf_counter(), done, time.process_time(), cpu_of_workers()
    yield time.perf_counter(), done, time.process_time(), cpu_of_workers()


def main(cases: int, rounds: int) -> None:
    cluster = RayCluster()
    kinds: dict[str, tuple[int, str]] = {
        "recorded, one metric": (cases, f'{RECORDED}\njudge = "none"\n[tool.rageval.metrics]\nenabled = ["mrr"]'),
        "recorded, default metrics": (cases, RECORDED),
        "200 ms a call": (min(cases, ASKED), 'target = "waiting:answer"'),
    }  # fmt: skip
    for kind, (number, table) in kinds.items():
        with TemporaryDirectory() as folder:
            write_project(Path(folder), number, table)
            figures: dict[int, list[Figures]] = {1: [], 2: []}
            for _ in range(rounds):
                for workers, each in figures.items():
                    each.append(measured(Path(folder), cluster, workers))
        for workers, each in figures.items():
            medians = {name: statistics.median(getattr(one, name) for one in each) for name in Figures._fields}
            shown = ", ".join(f"{name} {value:.3g}" for name, value in medians.items())
            print(f"{kind}, {number} cases, {workers} workers: {shown}; load {os.getloadavg()[0]:.1f}", flush=True)
    cluster.close()


if __name__ == "__main__":
    main(*(int(argument) for argument in [*sys.argv[1:], "4000", "3"][:2]))
