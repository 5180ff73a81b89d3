"""The end of `rageval run`: summary, notes, where the reports are, what to call next, exit code and JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_rageval.cli.end_of_run import show
from pytest_rageval.cli.exit_codes import INTERNAL, INTERRUPTED
from pytest_rageval.cli.run.pipeline import Ended, resume_command
from pytest_rageval.cli.run.run_options import as_written_here
from pytest_rageval.cli.run.screen import Screen
from pytest_rageval.finish import Finished
from pytest_rageval.io.masking import public_target
from pytest_rageval.report.gate_tests import gate_tests

REPORTS = ("summary.md", "report.html")


def exit_code(ended: Ended, screen: Screen) -> int:
    """Show what the run came to; its exit code."""
    if ended.is_broken:
        return INTERNAL
    code = show(ended.finished, ended.prepared.plan, as_written_here) if ended.finished is not None else 0
    for note in ended.notes:
        screen.line(note, colour="yellow")
    if ended.finished is not None:
        for path in _reports(ended.finished):
            screen.line(f"{path.stem}: {_from_here(path)}")
    if ended.left_out_judge is not None:
        screen.line(f"judge its answers later: {judge_command(ended)}", colour="yellow")
    if _can_be_resumed(ended):
        screen.line(f"interrupted; {resume_command(ended.run_id)} finishes it", colour="yellow")
    elif ended.is_interrupted:
        screen.line("interrupted before anything was answered: nothing is kept", colour="yellow")
    if ended.is_interrupted:
        return INTERRUPTED
    return max(code, int(bool(screen.failed_steps) or ended.has_stopped))


def _can_be_resumed(ended: Ended) -> bool:
    """Is there more to ask, and anything to go on from? A run in which nothing was answered has left no folder."""
    is_unfinished = ended.finished is not None and ended.finished.is_unfinished
    folder = ended.prepared.project.reports / "runs" / ended.run_id
    return ended.is_broken or ((ended.is_interrupted or is_unfinished) and folder.is_dir())


def judge_command(ended: Ended) -> str:
    """What judges the answers of a run whose judge could not be asked."""
    return f"rageval judge {ended.run_id} --judge {public_target(ended.left_out_judge or 'SPEC')}"


def outcome(ended: Ended, screen: Screen) -> dict[str, Any]:
    """What `--json` says of a run beside the exit code."""
    finished, mask = ended.finished, ended.prepared.mask
    content: dict[str, Any] = {"run": ended.run_id, "failed_steps": screen.failed_steps}
    if finished is not None:
        failed = (test for test in gate_tests(finished, ended.prepared.plan) if test.outcome == "failed")
        content |= {
            "folder": str(finished.folder),
            "reports": {path.stem: str(path) for path in _reports(finished)},
            "verdict": finished.metrics["verdict"]["word"],
            "sentence": finished.metrics["verdict"]["sentence"],
            "partial": finished.is_partial,
            "outcomes": finished.metrics["outcomes"],
            "overall_score": finished.metrics["overall_score"],
            "failed_gates": {test.name: test.message for test in failed},
        }
    masked: dict[str, Any] = mask.value(content | {"next": list(_next(ended))})
    return masked


def _reports(finished: Finished) -> Iterator[Path]:
    return (path for name in REPORTS if (path := finished.folder / name).is_file())


def _from_here(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _next(ended: Ended) -> Iterator[str]:
    """Commands that one would type now."""
    finished = ended.finished
    if ended.left_out_judge is not None:
        yield judge_command(ended)
    if _can_be_resumed(ended):
        yield resume_command(ended.run_id)
    if finished is None:
        return
    if bad := [row.key for row in finished.rows if row.outcome in ("failed", "error")]:
        yield f"rageval explain {ended.run_id} {shlex.quote(bad[0])}"
    if finished.metrics["comparison"] is not None:
        yield f"rageval compare baseline {ended.run_id}"
    elif finished.metrics["can_be_baseline"] and not ended.is_interrupted:
        yield "rageval run --update-baseline"
