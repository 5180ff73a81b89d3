"""Forms: what was submitted, as a pydantic model, with the typed values and the errors by field."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Generic, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel, Field, ValidationError
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

from pytest_rageval.text import names_of
from pytest_rageval.web.sessions import API, is_form_token
from pytest_rageval.web.versions.agent import LONGEST_NOTE, LONGEST_PROMPT

FORM_TOKEN = "form_token"  # noqa: S105 because it is the name of a field
KINDS = ("application/x-www-form-urlencoded", "multipart/form-data")
Title = Annotated[str, Field(max_length=80)]
OneLine = Annotated[str, Field(max_length=500)]
Note = Annotated[str, Field(max_length=LONGEST_NOTE)]
Paragraphs = Annotated[str, Field(max_length=2_000)]
Prose = Annotated[str, Field(max_length=LONGEST_PROMPT)]


async def submitted(request: Request) -> AsyncIterator[FormData]:
    """Yield the fields and files of a POST, and none for other methods; raise HTTPException if it is refused.

    The app depends on it for every request, so that no route that writes can forget it.
    """
    if request.method != "POST" or request.url.path.startswith(API):  # the API needs the token of the app instead
        yield FormData()
        return
    kind, _, rest = request.headers.get("content-type", "").partition(";")
    if kind.strip().lower() not in KINDS:
        raise HTTPException(415, f"A form is sent as {' or '.join(KINDS)}.")
    # Starlette decodes by this charset: an odd one would change what was typed, or raise.
    if any(name == "charset" and value != "utf-8" for name, value in _parameters(rest)):
        raise HTTPException(415, "A form is sent in UTF-8.")
    limits = request.app.state.site.settings.limits
    form = await request.form(max_files=limits.files, max_fields=limits.fields, max_part_size=limits.field_bytes)
    try:
        given = form.get(FORM_TOKEN)
        if not is_form_token(request, given if isinstance(given, str) else ""):
            raise HTTPException(
                403, "This form is of another session: go back, load its page again, and send it once more."
            )
        yield form
    finally:
        await form.close()


def _parameters(written: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a Content-Type's parameters, without quotes."""
    for parameter in written.lower().split(";"):
        name, _, value = parameter.partition("=")
        yield name.strip(" \t*"), value.strip(' \t"')


Submitted = Annotated[FormData, Depends(submitted)]
"""A route parameter: the submitted form."""


MOST_PROBLEMS = 100
"""Maximum number of problems at a field."""
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class FormState(Generic[M]):
    """A form before or after it is submitted.

    values  the typed values by field
    errors  the errors by field; those of the whole form under `""`
    model   the validated form; None if it was not submitted or has errors
    """

    values: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    errors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    model: M | None = None

    def with_problem(self, name: str, *problems: str) -> FormState[M]:
        """Return the form with more problems: of a field, or of the whole form if `name` is `""`."""
        shown = [*problems[:MOST_PROBLEMS]]
        if more := len(problems) - len(shown):
            shown.append(f"… and {more:,} more")
        return FormState(self.values, {**self.errors, name: [*self.errors.get(name, ()), *shown]}, None)


def read_form(model: type[M], form: FormData) -> FormState[M]:
    """Read a submitted form as this model; a field declared as a list takes every value of its name.

    Browsers send line breaks as CR LF; they are read as LF.
    """
    values: dict[str, str | list[str]] = {}
    for name, declared in model.model_fields.items():
        texts = [value.replace("\r\n", "\n") for value in form.getlist(name) if isinstance(value, str)]
        if _is_list(declared.annotation):
            values[name] = texts
        elif texts:
            values[name] = texts[-1]
    try:
        return FormState(values, {}, model.model_validate(values, strict=False))
    except ValidationError as invalid:
        errors: dict[str, list[str]] = {}
        for flaw in invalid.errors():
            name = str(flaw["loc"][0]) if flaw["loc"] else ""
            message = "is missing" if flaw["type"] == "missing" else flaw["msg"].removeprefix("Value error, ")
            errors.setdefault(name, []).append(message)
        return FormState(values, errors)


def split_tags(written: str) -> tuple[str, ...]:
    """Return the unique tags of a comma-separated list."""
    return tuple(dict.fromkeys(names_of(written)))


def _is_list(annotation: object) -> bool:
    return getattr(annotation, "__origin__", None) in (list, tuple)
