"""A judgement as JSON, written and read back by its fields; `cached` is a fact of one run and left out."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pytest_rageval.io.messages import spelled
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import Judgement
from pytest_rageval.text import excerpt

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError


def judgement_to_json(judgement: Judgement) -> str:
    """A ValueError where it holds what no JSON text can, such as half of a surrogate pair."""
    return _adapter().dump_json(judgement, exclude={"cached"}, warnings="error").decode()


def judgement_from_json(text: bytes | str) -> Judgement:
    """A ValueError says in one line where it is no judgement."""
    from pydantic import ValidationError

    try:
        return _adapter().validate_json(text)
    except ValidationError as error:
        raise ValueError(_problem(error, text)) from None


def _problem(error: ValidationError, text: bytes | str) -> str:
    from pytest_rageval.io.flaws import flaws_of

    try:
        flaw = flaws_of(error, parse(text), Judgement)[0]
    except StrictJsonError:
        return "is no JSON"
    problem = "is missing" if flaw.is_missing else "is not a known key" if flaw.is_unknown else flaw.message
    return excerpt(f"{spelled(flaw.path)} {problem}".lstrip())


@cache
def _adapter() -> TypeAdapter[Judgement]:
    # Built at the first judgement, not at import: it takes milliseconds that a run without any should not pay.
    from pydantic import TypeAdapter

    return TypeAdapter(Judgement)
