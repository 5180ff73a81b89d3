"""Records from outside, read by pydantic into our values; what is wrong with one is said as findings, all at once.

A type is declared once, of dataclasses and the parts below. It is read strictly: a key that it does not have is wrong,
a number is no string, true is no 1, and null equals absent.

    @dataclass(frozen=True, slots=True)
    class Label:
        id: Name
        score: Annotated[float, Field(ge=0, le=4), Expects("a number from 0 to 4")] | None = None

    LABELS = RecordReader(Label)                      # nothing is built before the first record
    LABELS.read(parse('{"id": "a", "scor": 3}'))      # Unsound: scor is not a known key; did you mean 'score'?

Where a reader `keeps_unknown`, a type with a field `extra` keeps there what it does not know: in an answer of somebody
else's system that is no mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Generic, TypeVar, cast

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, SchemaValidator
from pydantic_core.core_schema import no_info_before_validator_function

from pytest_rageval.io.expected import EXTRA, Expects
from pytest_rageval.io.flaws import flaws_of
from pytest_rageval.io.messages import Findings, Unsound
from pytest_rageval.model import NOTHING, Json

T = TypeVar("T")


Name = Annotated[
    str,
    # Unicode, to pydantic's engine, has four separators less than Python; editors need not see them.
    Field(pattern=r"[^\s\x1c-\x1f]", json_schema_extra={"pattern": r"\S"}),
    Expects("a string", broken="is blank"),
]
"""A string that is not blank."""


def becomes(made: type) -> Callable[[type[T]], type[T]]:
    """Decorates a dataclass that only declares how another one is read: it has the fields of `made`, more strictly."""

    def mark(declared: type[T]) -> type[T]:
        _BECOMES[declared] = made
        return declared

    return mark


_BECOMES: dict[type, type] = {}


class RecordReader(Generic[T]):
    """Reads JSON values as one type.

    remedy         says what to do with a key of the record itself that nobody knows
    elsewhere      names worth suggesting for one beside the record's own
    parts          core schemas that read all values of a type in place of pydantic's own
    keeps_unknown  types with a field `extra` keep there what they do not know
    skips_unknown  keys that nobody knows are passed over
    """

    def __init__(
        self,
        of: Any,
        remedy: Callable[[str], str] | None = None,
        elsewhere: Collection[str] = (),
        parts: Mapping[Any, CoreSchema] = NOTHING,
        *,
        keeps_unknown: bool = False,
        skips_unknown: bool = False,
    ) -> None:
        self._of = of
        self._remedy = remedy
        self._elsewhere = elsewhere
        self._strictness = _Strictness(parts, keeps_unknown, skips_unknown)

    def read(self, value: Json, context: Any = None) -> T:
        """The value that a record becomes; Unsound says all that is wrong with it, in the order of the record.

        Validators that take pydantic's ValidationInfo find `context` in it.
        """
        try:
            return self.validate(value, context=context)
        except ValidationError:
            pass
        try:
            return self._validate_with_nulls(value, context=context)
        except ValidationError as error:
            raise Unsound(self.findings(error, value, context)) from None

    @cached_property
    def validate(self) -> Callable[..., T]:
        """The quick reader, for who has another way where it raises pydantic's ValidationError: it stops at nulls."""
        return self._validator(self._strictness)

    @cached_property
    def _validate_with_nulls(self) -> Callable[..., T]:
        # Apart, since looking for nulls is a call of ours for each object: one part in eight of reading a case.
        return self._validator(replace(self._strictness, drops_nulls=True))

    def _validator(self, strictness: _Strictness) -> Callable[..., T]:
        return SchemaValidator(strictness.applied(self._adapter.core_schema)).validate_python

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._of)

    def findings(self, error: ValidationError, value: Json, context: Any = None) -> Findings:
        """What pydantic says of a record, in our words."""
        if error.error_count() > _MOST_ERRORS:
            try:
                self._validate_with_nulls(_Beginning().of(value), context=context)
            except ValidationError as of_beginning:
                findings = self._in_our_words(of_beginning, value)
                findings.more = error.error_count() - len(findings.kept)
                return findings
        return self._in_our_words(error, value)

    def _in_our_words(self, error: ValidationError, value: Json) -> Findings:
        flaws = flaws_of(error, value, self._of)
        findings = Findings()
        for flaw in flaws:
            if flaw.is_unknown:
                at_top = len(flaw.path) == 1
                keys = {*flaw.known, *self._elsewhere} if at_top else flaw.known
                remedy = self._remedy(str(flaw.path[-1])) if at_top and self._remedy else ""
                findings.unknown(flaw.path, keys, remedy)
            elif not flaw.is_missing:
                findings.add(flaw.path, flaw.message)
            else:
                last = flaw.path[-1]
                findings.add(flaw.path[:-1], f"has no {last}" if isinstance(last, str) else "is too short")
        return findings


def schemas_of(types: Mapping[str, Any]) -> tuple[dict[str, dict[str, Json]], dict[str, dict[str, Json]]]:
    """JSON Schema of each type, and the definitions that they refer to below `#/$defs/`."""
    adapters = [(name, "validation", TypeAdapter(of)) for name, of in types.items()]
    schemas, root = TypeAdapter.json_schemas(cast("Any", adapters))
    return {name: schema for (name, _), schema in schemas.items()}, root.get("$defs", {})


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


# ── strictness ────────────────────────────────────────────────────────────────────────────────────────────────────────

_LEAVES: Mapping[str, type] = {"str": str, "bool": bool, "int": int, "float": float}
_OPAQUE = frozenset({"cls", "config", "default", "expected", "metadata", "serialization"})
"""What stands in a core schema and is none."""


@dataclass(frozen=True, slots=True)
class _Strictness:
    """Makes a core schema that converts nothing, knows its keys, and takes null for absent.

    Said here for all types at once, so that no field of any of them can be forgotten.
    """

    parts: Mapping[Any, CoreSchema]
    keeps_unknown: bool
    skips_unknown: bool = False
    drops_nulls: bool = False

    def applied(self, schema: Any) -> Any:
        """The core schema, made strict, with all those in it."""
        if isinstance(schema, list):
            return [self.applied(each) for each in schema]
        if not isinstance(schema, dict):
            return schema
        kind = schema.get("type")
        if isinstance(kind, str) and (part := self.parts.get(_type_of(schema))) is not None:
            return part
        schema = {key: inner if key in _OPAQUE else self.applied(inner) for key, inner in schema.items()}
        if isinstance(kind, str) and kind in _LEAVES:
            schema.setdefault("strict", True)
        if kind == "float":
            schema.setdefault("allow_inf_nan", False)
        if kind == "dataclass":
            schema["cls"] = _BECOMES.get(schema["cls"], schema["cls"])
        keys = _object_keys(schema)
        if self.keeps_unknown and kind == "dataclass-args" and EXTRA in keys:
            return _others_in_extra(schema, keys - {EXTRA})
        if kind in ("typed-dict", "dataclass-args") and schema.get("extra_behavior") != "allow":
            schema["extra_behavior"] = "ignore" if self.skips_unknown else "forbid"
        if keys and (self.drops_nulls or self.keeps_unknown or _would_keep_nulls(schema)):
            return _null_is_absent(schema, keys)
        return schema


def _would_keep_nulls(schema: Mapping[str, Any]) -> bool:
    """True if a null in an object may become another value than what an absent key gives."""
    if schema["type"] != "dataclass-args":
        return True
    inner = [field["schema"] for field in schema["fields"]]
    return any(
        each["type"] in _TAKE_NULL or (each["type"] == "default" and each["schema"]["type"] in _TAKE_NULL)
        for each in inner
        if each.get("default", ...) is not None
    )


_TAKE_NULL = frozenset({"any", "nullable"})


def _type_of(schema: Mapping[str, Any]) -> Any:
    """The type that a core schema reads, where it says so; a call is that of a named tuple."""
    kind = schema["type"]
    return _LEAVES.get(kind) or schema.get("cls") or (schema["function"] if kind == "call" else None)


def _object_keys(schema: Mapping[str, Any]) -> frozenset[str]:
    """The keys of the object that a core schema reads, if it reads one."""
    kind = schema.get("type")
    if kind == "typed-dict":
        return frozenset(schema["fields"])
    if kind == "dataclass-args":
        return frozenset(field["name"] for field in schema["fields"])
    maker = schema.get("cls") if kind == "named-tuple" else schema.get("function") if kind == "call" else None
    return frozenset(getattr(maker, "_fields", ()))


def _null_is_absent(schema: dict[str, Any], keys: frozenset[str]) -> CoreSchema:
    def without_nulls(value: Json) -> Json:
        if type(value) is dict:
            if None not in value.values():
                return value
            return {key: inner for key, inner in value.items() if inner is not None or key not in keys}
        if isinstance(value, Mapping):
            return without_nulls({**value})
        # Said here: a named tuple would take a list for its fields.
        raise PydanticCustomError("object_type", "Input should be an object")

    return no_info_before_validator_function(without_nulls, cast("CoreSchema", schema), ref=schema.pop("ref", None))


def _others_in_extra(schema: dict[str, Any], names: frozenset[str]) -> CoreSchema:
    # Others take null as it is. So the usual object passes as it came, at a third of the price of a copy.
    not_null = [field["name"] for field in schema["fields"] if field["name"] in names and not _is_nullable(field)]

    def apart(value: Json) -> Json:
        if not isinstance(value, dict):
            raise PydanticCustomError("object_type", "Input should be an object")
        if value.keys() <= names:
            for name in not_null:
                if value.get(name, value) is None:
                    break
            else:
                return value
        members = {name: inner for name, inner in value.items() if inner is not None and name in names}
        if others := {name: inner for name, inner in value.items() if name not in names}:
            members[EXTRA] = others
        return members

    return no_info_before_validator_function(apart, cast("CoreSchema", schema))


def _is_nullable(field: Mapping[str, Any]) -> bool:
    schema = field["schema"]
    inner: Mapping[str, Any] = schema["schema"] if schema["type"] == "default" else schema
    return bool(inner["type"] == "nullable")
