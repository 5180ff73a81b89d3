"""What a system reported besides its answer, as a record has it: versions, names of parts, tool calls."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from pytest_rageval.model import Answer, Matching
from pytest_rageval.model.versions import is_version
from pytest_rageval.runs.records.record_texts import RecordTexts
from pytest_rageval.runs.records.tool_call_lines import tool_call_lines


def reported_fields(answer: Answer, matching: Matching, text: RecordTexts) -> dict[str, Any]:
    """Return these fields of a record; `tool_calls` only where the system reports them, which few do."""
    reported: dict[str, Any] = {"versions": _versions(answer), "reported": _reported(answer)}
    if answer.tool_calls is not None:
        reported["tool_calls"] = text.all(tool_call_lines(answer, matching))
    return reported


def _versions(answer: Answer) -> dict[str, Any] | None:
    """Return the versions that the system reports; the `model_name` of an uploaded answer counts as its `llm`."""
    versions = dict(answer.versions)
    name = answer.extra.get("model_name")
    if isinstance(name, str) and name and is_version(name):
        versions.setdefault("llm", name)
    return versions or None


def _reported(answer: Answer) -> list[str]:
    """Return the fields that the system reported besides its answer; the searched folders follow from a setting."""
    reported = [name for name in ("references", "chunks") if getattr(answer, name) is not None]
    trace = answer.trace
    if trace is None:
        return reported
    parts = [part.name for part in fields(trace) if part.name != "extra"]
    reported += [f"trace.{name}" for name in parts if getattr(trace, name) is not None]
    return reported
