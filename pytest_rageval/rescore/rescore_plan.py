"""The plan by which a stored run is decided again, and what its config.json says then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_rageval.config.settings import Settings
from pytest_rageval.io.masking import public_target
from pytest_rageval.plan import Plan, make_plan
from pytest_rageval.runs.config import config_hash_of
from pytest_rageval.runs.disk.reader import StoredRun
from pytest_rageval.runs.record_texts import CUT
from pytest_rageval.runs.stored_plan import registry_of, settings_of

OF_JUDGING = ("judge", "judge_base_url", "judge_temperature", "judge_repeats", "rubrics", "retrieval_only")
"""Settings that judging again may change; all others stay as the run had them."""


def plan_again(
    run: StoredRun,
    current: Settings,
    root: Path,
    *,
    metrics: Sequence[str] = (),
    judging: Mapping[str, Any] | None = None,
) -> Plan:
    """The run's own plan with `metrics` beside its own; `judging` are settings that replace those of the run.

    What its files hold stays as full or as short as it is.
    """
    overriding: dict[str, Any] = {
        "description": run.finished_metrics["description"],
        "store_full_text": has_full_texts(run),
        "save_traces": True,
        "redact": False,
        "update_baseline": False,
    }
    settings = settings_of(run, current).model_copy(update=overriding | dict(judging or {}))
    if metrics:
        enabled = (*(settings.enabled or ()), *metrics)
        settings = settings.model_copy(update={"enabled": enabled, "retrieval_only": False})
    plan = make_plan(settings, registry_of(run), root)
    # What the run measured was not named by anybody: only what is named now is missed where it has no value.
    return replace(plan, settings=settings.model_copy(update={"enabled": tuple(metrics) or None}))


def has_full_texts(run: StoredRun) -> bool:
    """Do its records hold whole texts? Only those of a run that was told to can be longer than the cut."""
    return any(
        len(text or "") > CUT + 1
        for record in run.records()
        for text in (record["question"], record["answer"], *(chunk["text"] for chunk in record["retrieved_chunks"]))
    )


def config_again(run: StoredRun, plan: Plan, **changed: Any) -> Mapping[str, Any]:
    """The run's config.json with what the plan measures now, and with other `changed` fields; its hash follows."""
    judging = plan.settings.model_dump(mode="json", include=set(OF_JUDGING))
    judging |= {name: public_target(judging[name]) for name in ("judge", "judge_base_url") if judging[name] is not None}
    names = [measure.name for measure in (*plan.measures, *plan.run_measures)]
    config = {
        **run.config,
        "metrics": names,
        "rubrics": {name: wording.prompt_version for name, wording in sorted(plan.wordings.items())},
        "ontology": plan.ontology,
        "settings": {**run.config["settings"], **judging},
        **changed,
    }
    return run.config if config == run.config else config | {"config_hash": config_hash_of(config)}
