"""Where do the microseconds of a recorded case go? Stage by stage, each the least of many short rounds.

python benchmarks/case_stages.py [SECONDS]

Without calls there is nothing to wait for, so that on a busy machine the least round tells what the others hide. The
first line is a scale: `json.loads` of one answer of 2.8 kB.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from harness import empty_folder
from items import LEAST
from projects import recorded_project

CASES = 300
SECONDS = 15.0


def stages(folder: Path) -> dict[str, Callable[[], object]]:
    """What is done with the cases of a project, by stage."""
    from pytest_rageval.cases.canonical import content_hash
    from pytest_rageval.cases.loading import load_file
    from pytest_rageval.config.project import find_project
    from pytest_rageval.model import Trial
    from pytest_rageval.run.engine import observe_case, observed_at_once
    from pytest_rageval.run.prepare import make_target, prepare
    from pytest_rageval.run.scoring import evaluation
    from pytest_rageval.runs.folder import RunFolder
    from pytest_rageval.runs.records.observation_line import observation_line
    from pytest_rageval.runs.records.result_line import record_lines
    from pytest_rageval.runs.results_file import RunWriter

    prepared = prepare(find_project({}))
    plan, path, root = prepared.plan, folder / "evalcases" / "cases.jsonl", folder.resolve()
    raw = (folder / "answers.jsonl").read_text(encoding="utf-8").partition("\n")[0]
    cases, target = load_file(path, root).cases, make_target(prepared.project)
    trials = [Trial(case) for case in cases]
    observed = [observed_at_once(observe_case(case, target, None, plan, submitted=0.0)) for case in cases]
    evaluated = [evaluation([trial], [each], plan) for trial, each in zip(trials, observed, strict=True)]
    lines = [record_lines(each, plan, "0" * 64) for each in evaluated]
    run = folder / "reports" / "runs" / "stages"
    run.mkdir(parents=True)
    writer = RunWriter(RunFolder(run), plan, {})
    pairs = list(zip(trials, observed, strict=True))

    def write() -> None:
        for each in lines:
            writer.add(each, is_paid=False)

    return {
        "json.loads of an answer": lambda: [json.loads(raw) for _ in cases],
        "read and check the case": lambda: load_file(path, root),
        "check the answer": lambda: make_target(prepared.project),
        "hash the case": lambda: [content_hash(case) for case in load_file(path, root).cases],
        "read the answer, match it with the gold": lambda: [
            observed_at_once(observe_case(case, target, None, plan, submitted=0.0)) for case in cases
        ],
        "line of observations.jsonl": lambda: [observation_line(trial, each, plan.settings) for trial, each in pairs],
        "score and gate": lambda: [evaluation([trial], [each], plan) for trial, each in pairs],
        "line of results.jsonl": lambda: [record_lines(each, plan, "0" * 64) for each in evaluated],
        "write it, keep a row": write,
    }


def measured(settings: str, seconds: float) -> dict[str, float]:
    """Microseconds of a case by stage."""
    with empty_folder() as folder:
        recorded_project(folder, CASES, settings)
        os.chdir(folder)
        found = stages(folder)
        least = dict.fromkeys(found, float("inf"))
        gc.disable()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for name, stage in found.items():
                started = time.perf_counter()
                stage()
                least[name] = min(least[name], (time.perf_counter() - started) / CASES * 1e6)
        gc.enable()
        os.chdir("/")
    least["hash the case"] -= least["read and check the case"]
    return least


def main(seconds: float) -> None:
    one, usual = measured(LEAST, seconds), measured('judge = "none"', seconds)
    for name, figure in one.items():
        print(f"{name:42} {figure:6.1f} {usual[name]:6.1f}")
    print(f"{'sum without the first':42} {sum([*one.values()][1:]):6.1f} {sum([*usual.values()][1:]):6.1f}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS)
