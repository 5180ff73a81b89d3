"""What templates get: dataclasses with a sentence for each field."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


def variables(context: Any) -> dict[str, Any]:
    """Return the variables of a template by name: the fields of a dataclass, which are not copied."""
    return {field.name: getattr(context, field.name) for field in fields(context)}
