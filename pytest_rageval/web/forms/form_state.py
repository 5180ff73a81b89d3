"""What a form shows: the values as they were typed, and what is wrong with them beside each field."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Generic, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel, Field, ValidationError
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

from pytest_rageval.io.expected import Expects
from pytest_rageval.io.records import flaws_of
from pytest_rageval.text import names_of
from pytest_rageval.web.rendering import FORM_TOKEN
from pytest_rageval.web.security.session import BrowserSession
from pytest_rageval.web.site import site_of
from pytest_rageval.web.versions.agent import LONGEST_NOTE, LONGEST_PROMPT

KINDS = ("application/x-www-form-urlencoded", "multipart/form-data")
Title = Annotated[str, Field(max_length=80), Expects("at most 80 characters")]
OneLine = Annotated[str, Field(max_length=500), Expects("at most 500 characters")]
Note = Annotated[str, Field(max_length=LONGEST_NOTE), Expects(f"at most {LONGEST_NOTE:,} characters")]
Address = Annotated[str, Field(max_length=2_000), Expects("at most 2,000 characters")]
Paragraphs = Annotated[str, Field(max_length=2_000), Expects("at most 2,000 characters")]
Prose = Annotated[str, Field(max_length=LONGEST_PROMPT), Expects(f"at most {LONGEST_PROMPT:,} characters")]


async def submitted(request: Request) -> AsyncIterator[FormData]:
    """The fields and files of a POST, and nothing of any other; HTTPException where it must not be taken.

    The app asks this of every request, so that no route that writes can forget it.
    """
    if request.method != "POST":
        yield FormData()
        return
    kind, _, rest = request.headers.get("content-type", "").partition(";")
    if kind.strip().lower() not in KINDS:
        raise HTTPException(415, f"A form is sent as {' or '.join(KINDS)}.")
    if any(name == "charset" and value != "utf-8" for name, value in _parameters(rest)):
        raise HTTPException(415, "A form is sent in UTF-8.")
    limits = site_of(request).settings.limits
    form = await request.form(max_files=limits.files, max_fields=limits.fields, max_part_size=limits.field_bytes)
    try:
        session: BrowserSession = request.state.session
        given = form.get(FORM_TOKEN)
        if not session.is_form_token(given if isinstance(given, str) else ""):
            raise HTTPException(
                403, "This form is of another session: go back, load its page again, and send it once more."
            )
        yield form
    finally:
        await form.close()


def _parameters(written: str) -> Iterator[tuple[str, str]]:
    """Names and values behind the kind of a body, without their marks."""
    for parameter in written.lower().split(";"):
        name, _, value = parameter.partition("=")
        yield name.strip(" \t*"), value.strip(' \t"')


Submitted = Annotated[FormData, Depends(submitted)]
"""A parameter of a route that takes a form."""


M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class FormState(Generic[M]):
    """A form before or after it was sent.

    values  by field what stands in it
    errors  by field what is wrong with it; under `""` what is wrong with the whole
    model   the form that was read; None where it was not sent, or something is wrong
    """

    values: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    errors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    model: M | None = None

    def refused(self, name: str, problem: str) -> FormState[M]:
        """The same with one more problem: of a field, or with `""` of the whole."""
        errors = {**self.errors, name: [*self.errors.get(name, ()), problem]}
        return FormState(self.values, errors, None)


def read_form(model: type[M], form: FormData) -> FormState[M]:
    """Read a form that was sent as this model; fields that it declares as lists take every value of their name.

    Line breaks come from browsers as CR LF, and are read as LF.
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
        for flaw in flaws_of(invalid, values, model):
            name = str(flaw.path[0]) if flaw.path else ""
            errors.setdefault(name, []).append("is missing" if flaw.is_missing else flaw.message)
        return FormState(values, errors)


def split_tags(written: str) -> tuple[str, ...]:
    """Tags that stand behind one another, with commas between; each once."""
    return tuple(dict.fromkeys(names_of(written)))


def _is_list(annotation: object) -> bool:
    return getattr(annotation, "__origin__", None) in (list, tuple)
