"""Notes on who judged: not pinned, not at temperature 0, judging itself or its kin, suspicious replies."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from pytest_rageval.io.suggestions import listed
from pytest_rageval.llm.model_identity import model_family, same_model
from pytest_rageval.runs.row import Row


def judge_notes(config: Mapping[str, Any], systems: Collection[object], rows: Sequence[Row]) -> Iterator[str]:
    """The notes, a line each; none about a heuristic judge or none. `systems`: the models that gave the answers."""
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
    for model, llm in product(models, sorted(system for system in systems if isinstance(system, str))):
        if same_model(llm, model):
            yield f"{llm} judges itself: the system's model and the judge's are the same, which favours its own answers"
        elif model_family(llm) is not None and model_family(llm) == model_family(model):
            yield f"{model} judges {llm}, a model of its own family, which favours answers in its own manner"
    flagged = sorted({row.key for row in rows if row.judge and row.judge.get("flags")})
    if flagged:
        yield f"judgements of {len(flagged)} cases are doubtful (see judge.flags): {listed(flagged)}"
