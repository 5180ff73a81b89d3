"""An agent that takes its time, and a job of it: what the tests of runs from the browser start."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from processes import PATIENCE_S
from web_app import allow_code

from pytest_rageval.web.jobs.job_status import JobStatus
from pytest_rageval.web.jobs.jobs import Jobs, Order

BOT = """
import itertools, os, time

asked = itertools.count()

def answer(question):
    is_free = next(asked) < 3
    while not is_free and "BOT_GATE" in os.environ and not os.path.exists(os.environ["BOT_GATE"]):
        time.sleep(0.02)
    time.sleep(float(os.environ.get("BOT_SECONDS", "0.15")))
    os.write(2, f"key in use: {os.environ.get('BOT_API_KEY')}\\n".encode())  # past what keeps the prints of cases
    return {"answer": "Water boils at 100 degrees.", "debug": {"retrieved_chunks": []}}
"""
CONFIGURATION = 'target = "slow_bot_app:answer"\nconcurrency = 1\n[gates]\ncase = ["token_f1 >= 0.1"]\n'


def project_with_bot(root: Path, keys: str = "BOT_API_KEY=sk-test-1234567890abcdef\n") -> Jobs:
    """A project whose bot reads `.env`: a key, and `BOT_GATE`, a file that it waits for after three answers."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "slow_bot_app.py").write_text(BOT)
    (root / ".env").write_text(keys)
    allow_code(root, "slow_bot_app", "no_such_module")
    return jobs_of(root)


def jobs_of(root: Path) -> Jobs:
    return Jobs(root / "data", root / "reports", root, root / ".env")


def an_order(cases: int = 3, *, configuration: str = CONFIGURATION, **changes: Any) -> Order:
    """Questions that the bot answers right."""
    lines = [
        json.dumps({"id": f"q{number}", "question": f"At which heat does water boil ({number})?",
                    "gold": {"answer": "Water boils at 100 degrees."}})
        for number in range(cases)
    ]  # fmt: skip

    def lay_out(folder: Path) -> None:
        (folder / "rageval.toml").write_text(configuration)
        (folder / "evalcases").mkdir()
        (folder / "evalcases/water.jsonl").write_text("\n".join(lines) + "\n")

    content: dict[str, Any] = {
        "agent": "slow-bot", "agent_version": 2, "dataset": "water", "dataset_version": 1, "source": "connector",
        "lay_out": lay_out, "cases": cases,
    }  # fmt: skip
    return Order(**content | changes)


def until(jobs: Jobs, job_id: str, claim: Callable[[JobStatus], bool]) -> JobStatus:
    """The job as soon as the claim is true of it."""
    deadline = time.monotonic() + PATIENCE_S
    while not claim(status := jobs.status(job_id)):
        assert time.monotonic() < deadline, (status, jobs.log(job_id))
        time.sleep(0.03)
    return status


def ended(status: JobStatus) -> bool:
    return not status.is_going


def under_way(status: JobStatus) -> bool:
    return status.progress.done >= 2
