"""The type of a pass rule in case files, tables and options."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from pytest_rageval.io.expected import Expects

EXPECTED_RULE = '"mean", "all", "majority", "any", or a share of the trials such as 0.8'
_SHARE_SCHEMA = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
_WORDS = ("mean", "all", "majority", "any")


def _number_of_text(written: Any) -> Any:
    """Return the share in a text, as a cell or an option gives it; anything else unchanged."""
    if not isinstance(written, str):
        return written
    try:
        return float(written)
    except ValueError:
        return written


_Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
WrittenPassRule = Annotated[
    Literal["mean", "all", "majority", "any"] | _Share,
    BeforeValidator(_number_of_text),
    WithJsonSchema({"anyOf": [{"enum": list(_WORDS)}, _SHARE_SCHEMA]}),
    Expects(EXPECTED_RULE),
]
