"""Records from outside, read by pydantic into our values; what is wrong with one is said as findings, all at once.

A type is declared once, of dataclasses and the parts below. It is read strictly: a key that it does not have is wrong,
a number is no string, true is no 1, and null equals absent.

    @dataclass(frozen=True, slots=True)
    class Label:
        id: Name
        score: Annotated[float, Field(ge=0, le=4), Expects("a number from 0 to 4")] | None = None

    LABELS = RecordReader(Label)                      # nothing is built before the first record
    LABELS.read(parse('{"id": "a", "scor": 3}'))      # Unsound: scor is not a known key; did you mean 'score'?
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Annotated, Any, Generic, TypeVar, cast

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, PydanticSerializationError, to_json
from typing_extensions import TypeAliasType

from pytest_rageval.io.expected import Expects
from pytest_rageval.io.flaws import flaws_of, mended
from pytest_rageval.io.messages import Finding, Findings, Unsound
from pytest_rageval.io.strict_json import MAX_DEPTH, limits_broken
from pytest_rageval.model import Json

T = TypeVar("T")


Name = Annotated[
    str,
    # Unicode, to pydantic's engine, has four separators less than Python; editors need not see them.
    Field(pattern=r"[^\s\x1c-\x1f]", json_schema_extra={"pattern": r"\S"}),
    Expects("a string", broken="is blank"),
]
"""A string that is not blank."""


class RecordReader(Generic[T]):
    """Reads JSON values as one type.

    remedy             what to do with a key of the record itself that nobody knows and that is close to none
    meaning            says of such a key what it is elsewhere, if anything: that goes first
    elsewhere          names worth suggesting for one beside the record's own
    takes_whole_floats 3.0 is a whole number
    """

    def __init__(
        self,
        of: Any,
        remedy: str = "",
        meaning: Callable[[str], str] = lambda _: "",
        elsewhere: Collection[str] = (),
        *,
        takes_whole_floats: bool = False,
    ) -> None:
        self._of = of
        self._remedy = remedy
        self._meaning = meaning
        self._elsewhere = elsewhere
        self._takes_whole_floats = takes_whole_floats

    def read(self, value: Json, context: Any = None) -> T:
        """The value that a record becomes; Unsound says all that is wrong with it, in the order of the record.

        Validators that take pydantic's ValidationInfo find `context` in it.
        """
        try:  # as text: of JSON alone pydantic takes lists for tuples, and objects for dataclasses, and is strict
            return self._validate(to_json(value), context=context)
        except PydanticSerializationError:
            if broken := _not_held(value):
                raise Unsound(Findings(*broken)) from None
            return self._read_surrogates(value, context)
        except ValidationError as error:
            is_long = error.error_count() > _MOST_ERRORS
            sound = value if is_long else mended(error, value, self._of, takes_whole_floats=self._takes_whole_floats)
        try:
            return self._validate(to_json(sound), context=context)
        except ValidationError as error:
            raise Unsound(self._findings(error, sound, context)) from None

    def _read_surrogates(self, value: Json, context: Any) -> T:
        """Read a value with half of a surrogate pair, which no JSON holds: only callers in Python can give one."""
        try:
            return self._adapter.validate_python(value, strict=False, context=context)
        except ValidationError as error:
            raise Unsound(self._in_our_words(error, value)) from None

    def get_ready(self) -> None:
        """Build what reads, where that was not done yet."""
        _ = self._adapter

    @property
    def _validate(self) -> Callable[..., T]:
        return self._adapter.validate_json

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        # Named anew, since pydantic takes a configuration for no dataclass that it did not make.
        of: Any = TypeAliasType("of", self._of)
        return TypeAdapter(of, config=ConfigDict(strict=True, extra="forbid", allow_inf_nan=False))

    def _findings(self, error: ValidationError, value: Json, context: Any) -> Findings:
        """What pydantic says of a record, in our words."""
        if error.error_count() > _MOST_ERRORS:
            try:
                self._validate(to_json(_Beginning().of(value)), context=context)
            except ValidationError as of_beginning:
                findings = self._in_our_words(of_beginning, value)
                findings.more = error.error_count() - len(findings.kept)
                return findings
        elif error.errors(include_url=False)[0]["type"] == "json_invalid":
            return Findings(*_not_held(value) or [Finding((), f"is nested deeper than {MAX_DEPTH} levels")])
        return self._in_our_words(error, value)

    def _in_our_words(self, error: ValidationError, value: Json) -> Findings:
        flaws = flaws_of(error, value, self._of)
        findings = Findings()
        for flaw in flaws:
            if flaw.is_unknown:
                if len(flaw.path) > 1:
                    findings.unknown(flaw.path, flaw.known)
                    continue
                keys, meaning = {*flaw.known, *self._elsewhere}, self._meaning(str(flaw.path[0]))
                findings.unknown(flaw.path, keys, self._remedy, meaning)
            elif not flaw.is_missing:
                findings.add(flaw.path, flaw.message)
            else:
                last = flaw.path[-1]
                findings.add(flaw.path[:-1], f"has no {last}" if isinstance(last, str) else "is too short")
        return findings


_MOST_ERRORS = 1000
"""Beyond so many only the beginning of a record is shown: each takes a kilobyte, 2 GB for a line of 4 MiB."""


class _Beginning:
    """Cuts the lists of a record, the first ones least: no key goes missing."""

    def __init__(self) -> None:
        self._room = _MOST_ERRORS

    def of(self, value: Json) -> Json:
        """The value with as many items as there is room for; each list keeps one."""
        if isinstance(value, Mapping):
            return {key: self.of(inner) for key, inner in value.items()}
        if not isinstance(value, list):
            return value
        kept = []
        for item in value:
            self._room -= 1
            kept.append(self.of(item))
            if self._room <= 0:
                break
        return kept


def becomes(made: type) -> Callable[[type[T]], type[T]]:
    """Decorate a dataclass that only declares how another one is read: it has the fields of `made`, more strictly."""

    def schema(_: type, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return cast("CoreSchema", {**handler.resolve_ref_schema(handler(source)), "cls": made})

    def mark(declared: type[T]) -> type[T]:
        setattr(declared, "__get_pydantic_core_schema__", classmethod(schema))  # noqa: B010 because no type says it
        return declared

    return mark


def _not_held(record: Json) -> list[Finding]:
    """Return the members of a record that nest too deep even to be looked at."""
    members = record.items() if isinstance(record, Mapping) else [("", record)]
    return [Finding((name,), problem) for name, value in members if (problem := limits_broken(value))]
