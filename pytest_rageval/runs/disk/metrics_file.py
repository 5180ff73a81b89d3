"""metrics.json as it is written: of a partial run what says so stands first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_rageval.io.atomic import write_text
from pytest_rageval.io.json_text import json_text

FIRST = ("partial", "selection")


def write_metrics(path: Path, metrics: Mapping[str, Any]) -> None:
    """Replace a metrics.json in one step: keys sorted, so that equal metrics are equal bytes.

    That of a partial run begins with `partial` and with what was selected: nobody takes it for the whole.
    """
    first = [name for name in FIRST if metrics["partial"] and name in metrics]
    head = [_member(name, metrics[name]) for name in first]
    rest = [_member(name, metrics[name]) for name in sorted(metrics.keys() - {*first})]
    write_text(path, "{\n" + ",\n".join([*head, *rest]) + "\n}\n")


def _member(name: str, value: Any) -> str:
    return json_text({name: value}, sort_keys=True)[2:-2]
