"""The fields of a record about several attempts at its case: few runs ask a case again, so most records have none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_rageval.model import CaseResult, Confirmation


def attempt_fields(result: CaseResult, overall: CaseResult) -> dict[str, Any]:
    """Return the attempt that a trial belongs to, how many records its case has, and the rule of its own."""
    fields: dict[str, Any] = {}
    if result.confirms:
        fields["confirms"] = result.confirms
    if overall.records is not None:
        fields["records"] = overall.records
    if result.case.pass_rule is not None:
        fields["pass_rule"] = result.case.pass_rule
    return fields


def decided_fields(overall: CaseResult) -> dict[str, Any]:
    """Return what of a verdict tells how several trials or attempts decided."""
    fields: dict[str, Any] = {}
    if overall.by_rule is not None:
        fields["by_rule"] = overall.by_rule
    if overall.confirmation is not None:
        confirmation = overall.confirmation._asdict()
        if not overall.confirmation.spared:
            del confirmation["spared"]
        fields["confirmation"] = confirmation
    return fields


def attempts_in(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a result about its attempts from its record."""
    verdict = record["verdict"]
    return {
        "by_rule": verdict.get("by_rule"),
        "confirms": record.get("confirms", 0),
        "confirmation": confirmation_in(verdict),
        "records": record.get("records"),
    }


def confirmation_in(verdict: Mapping[str, Any]) -> Confirmation | None:
    """Return what the attempts at a case came to, from the verdict in its record; None if it was asked once."""
    written = verdict.get("confirmation")
    if written is None:
        return None
    return Confirmation(**{**written, "spared": tuple(written.get("spared", ()))})
