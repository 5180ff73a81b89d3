"""The newest calibration of each judge and metric, stored with the judge cache, and those of a run's judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from pytest_rageval.io.atomic import readable_json, write_json
from pytest_rageval.judges.judge import recorded_identity

if TYPE_CHECKING:
    from pytest_rageval.check.calibrate import Calibration

CALIBRATIONS = Path("cache") / "calibrations.json"
"""The file below the reports."""


@dataclass(frozen=True, slots=True)
class CalibrationRecord:
    """How far a judge agreed with people in a metric at its last calibration.

    answers    labelled answers that both scored
    agreement  share of them on the same side of the gate; with its 95 % interval, and kappa
    """

    metric: str
    calibrated: datetime
    labels: str
    gate: str
    answers: int
    prompt_versions: tuple[str, ...]
    verdict: str
    agreement: float
    interval: tuple[float, float]
    cohens_kappa: float | None


def store_calibration(reports: Path, identity: str, labels: str, calibration: Calibration) -> None:
    """Replace the judge's last calibration in this metric; raise OSError if the file cannot be written.

    They hold no texts. Without an answer that both scored, nothing is kept.
    """
    agreement = calibration.agreement
    kappa = calibration.kappa
    if agreement is None or agreement.interval is None:
        return
    path = reports / CALIBRATIONS
    content = readable_json(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    record = CalibrationRecord(
        metric=calibration.gate.name,
        calibrated=datetime.now(UTC).replace(microsecond=0),
        labels=labels,
        gate=str(calibration.gate),
        answers=len(calibration.cases),
        prompt_versions=calibration.prompt_versions,
        verdict=calibration.verdict,
        agreement=agreement.value,
        interval=agreement.interval,
        cohens_kappa=None if kappa is None else kappa.value,
    )
    records = _of_judge(content, identity)
    records[record.metric] = TypeAdapter(CalibrationRecord).dump_python(record, mode="json")
    write_json(path, {**content, identity: records})


def stored_calibrations(reports: Path, judge: Mapping[str, Any] | None) -> tuple[CalibrationRecord, ...]:
    """Return the calibrations of the judge in a run's config.json, by metric; none if it has none here."""
    by_metric = _of_judge(readable_json(reports / CALIBRATIONS), recorded_identity(judge))
    records = [by_metric[metric] for metric in sorted(by_metric)]
    try:
        return TypeAdapter(tuple[CalibrationRecord, ...]).validate_python(records)
    except ValidationError:  # edited by hand; a new calibration replaces it
        return ()


def _of_judge(content: Mapping[str, Any], identity: str | None) -> dict[str, Any]:
    records = content.get(identity or "")
    return records if isinstance(records, dict) else {}
