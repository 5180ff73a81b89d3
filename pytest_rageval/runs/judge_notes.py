"""Notes on who judged: not pinned, not at temperature 0, unchecked, judging itself or its kin, suspicious replies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.io.suggestions import listed
from pytest_rageval.llm.model_identity import model_family, same_model
from pytest_rageval.runs.row import Row


def judge_notes(config: Mapping[str, Any], versions: Mapping[str, Any] | None, rows: Sequence[Row]) -> Iterator[str]:
    """The notes, a line each; none about a heuristic judge or none."""
    judge = config.get("judge")
    models = sorted({row.judge["model"] for row in rows if row.judge and not row.judge["heuristic"]})
    if models and judge and judge["model"] in models:
        if judge.get("pinned") is False:
            yield (
                f"judge {judge['model']} is not pinned: the name may mean another model tomorrow; "
                "name a dated or numbered version"
            )
        if judge.get("temperature"):
            yield f"the judge's temperature is {judge['temperature']:g}, not 0: its scores vary from run to run"
        if "judge_check" in config:
            yield from _check_notes(judge["model"], config["judge_check"])
    llm = (versions or {}).get("llm")
    for model in models:
        if isinstance(llm, str) and same_model(llm, model):
            yield f"{llm} judges itself: the system's model and the judge's are the same, which favours its own answers"
        elif isinstance(llm, str) and model_family(llm) is not None and model_family(llm) == model_family(model):
            yield f"{model} judges {llm}, a model of its own family, which favours answers in its own manner"
    flagged = sorted({row.key for row in rows if row.judge and row.judge.get("flags")})
    if flagged:
        yield f"judgements of {len(flagged)} cases are doubtful (see judge.flags): {listed(flagged)}"


def _check_notes(model: str, check: Mapping[str, Any] | None) -> Iterator[str]:
    """What is known of how this judge does on answers whose worth is beyond doubt."""
    if check is None:
        yield f"judge {model} was never checked here: rageval judge-check tries whether it can be trusted"
        return
    if check["unchecked"]:
        names = ", ".join(check["unchecked"])
        yield f"judge {model} was not checked with {names} as worded now: rageval judge-check tries it"
    failed = {name: result for name, result in check["rubrics"].items() if result["failed"]}
    if failed:
        parts = (f"{name} {len(result['failed'])} of {result['canaries']}" for name, result in failed.items())
        yield f"judge {model} failed canaries when it was checked ({check['checked'][:10]}): {', '.join(parts)}"
