"""What stands in the folder of a run, without what the clock says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

OF_THE_CLOCK = ("latency", "checksum", "cost")


def records_of(run: Path) -> dict[str, dict[str, Any]]:
    """Lines of results.jsonl by key, without what the clock decides."""
    lines = (run / "results.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
    records = [json.loads(line) for line in lines]
    stable = ({name: value for name, value in record.items() if name not in OF_THE_CLOCK} for record in records)
    return {record["case_key"]: record for record in stable}


def stable_bytes(run: Path) -> bytes:
    """metrics.json without `volatile`, as it would be written."""
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    del metrics["volatile"]
    return json.dumps(metrics, ensure_ascii=False).encode()
