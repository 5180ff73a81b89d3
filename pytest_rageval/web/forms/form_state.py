"""What a form shows: the values as they were typed, and what is wrong with them beside each field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.datastructures import FormData

from pytest_rageval.io.flaws import flaws_of
from pytest_rageval.text import names_of

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
