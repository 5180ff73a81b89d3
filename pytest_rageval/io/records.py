"""Records from outside, read by pydantic into our types; all problems of a record are reported at once.

A type is declared once, from dataclasses and the parts below. Reading is strict: unknown keys are errors, numbers are
not strings, true is not 1, and null equals absent.

    @dataclass(frozen=True, slots=True)
    class Label:
        id: Name
        score: Annotated[float, Field(ge=0, le=4), Expects("a number from 0 to 4")] | None = None

    LABELS = RecordReader(Label)                      # nothing is built before the first record
    LABELS.read(parse('{"id": "a", "scor": 3}'))      # Unsound: scor is not a known key; did you mean 'score'?
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_json
from typing_extensions import TypeAliasType

from pytest_rageval.io.expected import Expects, choices, expects, inner_type, known_keys, type_in_words
from pytest_rageval.io.messages import MOST_OF_A_RECORD, Finding, Findings, Path, Unsound, describe
from pytest_rageval.io.strict_json import MAX_DEPTH, limits_broken
from pytest_rageval.io.suggestions import KEY_CUTOFF, suggestion
from pytest_rageval.model import Json

T = TypeVar("T")


Name = Annotated[
    str,
    # pydantic's engine knows four fewer Unicode separators than Python.
    Field(pattern=r"[^\s\x1c-\x1f]", json_schema_extra={"pattern": r"\S"}),
    Expects("a string", broken="is blank"),
]
"""A string that is not blank."""


class RecordReader(Generic[T]):
    """Reads JSON values as one type.

    remedy             for an unknown key of the record itself without a similar known one
    meaning            returns the remedy for an unknown key at a path if it is known elsewhere; it takes precedence
    elsewhere          more names to suggest besides the record's own
    takes_whole_floats read 3.0 as an integer
    repeats_texts      look for equal short texts in earlier records, which then share memory: labels of cases are
                       alike, answers never are, and to look takes a tenth of the time of a recorded case
    """

    def __init__(
        self,
        of: Any,
        remedy: str = "",
        meaning: Callable[[Path], str] = lambda _: "",
        elsewhere: Collection[str] = (),
        *,
        takes_whole_floats: bool = False,
        repeats_texts: bool = False,
    ) -> None:
        self._of = of
        self._remedy = remedy
        self._meaning = meaning
        self._elsewhere = elsewhere
        self._takes_whole_floats = takes_whole_floats
        self._repeats_texts = repeats_texts

    def read(self, value: Json, context: Any = None, *, text: str | bytes | None = None) -> T:
        """Read a record; raise Unsound with all of its problems, in the order of the record.

        Validators that take pydantic's ValidationInfo find `context` in it. `text` is the value as JSON, if known.
        """
        try:  # as text: only from JSON does strict pydantic accept lists for tuples and objects for dataclasses
            return self._validate(_json(value) if text is None else text, context=context)
        except ValidationError as error:
            # Only a refused record is looked at again: most are right at once, in the engine alone.
            sound = value if error.error_count() > _MOST_ERRORS else self._mended(value, error)
        try:
            return self._validate(_json(sound), context=context)
        except ValidationError as error:
            raise Unsound(self._findings(error, sound, context)) from None

    def usual(self, text: str) -> T | None:
        """Read the JSON of a record without any problem; None for others. Keys may stand in it twice."""
        try:
            return self._validate(text)
        except ValidationError:
            return None

    def _mended(self, value: Json, error: ValidationError) -> Json:
        """Return a refused value with what may be written otherwise in its usual form."""
        return mended(error, value, self._of, takes_whole_floats=self._takes_whole_floats)

    def get_ready(self) -> None:
        """Build the validator, if not done yet."""
        _ = self._validate

    @cached_property
    def _validate(self) -> Callable[..., T]:
        # A copy under the same name, since pydantic takes a configuration for no dataclass that it did not make.
        of: Any = TypeAliasType("of", self._of)
        config = ConfigDict(
            strict=True, extra="forbid", allow_inf_nan=False, cache_strings="all" if self._repeats_texts else "keys"
        )
        adapter: TypeAdapter[T] = TypeAdapter(of, config=config)
        return adapter.validate_json

    def _findings(self, error: ValidationError, value: Json, context: Any) -> Findings:
        """Convert pydantic's errors to findings in our words."""
        count = error.error_count()
        findings = Findings()
        if count > _MOST_ERRORS:
            try:
                self._validate(_json(_beginning(value, iter(range(_MOST_ERRORS)))), context=context)
            except ValidationError as of_beginning:
                error = of_beginning
        elif error.errors(include_url=False)[0]["type"] == "json_invalid":
            return Findings(*_too_deep_members(value) or [Finding((), f"is nested deeper than {MAX_DEPTH} levels")])
        for flaw in flaws_of(error, value, self._of):
            last = flaw.path[-1] if flaw.path else ""
            if flaw.is_unknown and len(flaw.path) == 1:
                keys = {*flaw.known, *self._elsewhere}
                findings.unknown(flaw.path, keys, self._remedy, self._meaning(flaw.path))
            elif flaw.is_unknown:
                findings.unknown(flaw.path, flaw.known, meaning=self._meaning(flaw.path))
            elif flaw.is_missing:
                findings.add(flaw.path[:-1], f"has no {last}" if isinstance(last, str) else "is too short")
            else:
                findings.add(flaw.path, flaw.message)
        if count > _MOST_ERRORS:
            findings.more = count - len(findings.first)
        return findings


_MOST_ERRORS = 1000
"""Number of errors above which only the beginning of a record is validated: each takes a kilobyte, 2 GB for 4 MiB."""


def _json(value: Json) -> bytes:
    try:
        return to_json(value)
    except PydanticSerializationError:  # half of a surrogate pair, which only Python callers can pass
        broken = _too_deep_members(value) or [Finding((), "holds text that UTF-8 cannot encode")]
        raise Unsound(Findings(*broken)) from None


def _beginning(value: Json, room: Iterator[int]) -> Json:
    """Return a value with its lists cut when the room is used up; each list keeps at least one item, and each key."""
    if isinstance(value, Mapping):
        return {key: _beginning(inner, room) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    items = []
    for item in value:
        has_room = next(room, None) is not None
        items.append(_beginning(item, room))
        if not has_room:
            break
    return items


def _too_deep_members(record: Json) -> list[Finding]:
    """Return the members of a record that are nested too deep to be read."""
    members = record.items() if isinstance(record, Mapping) else [("", record)]
    return [Finding((name,), problem) for name, value in members if (problem := limits_broken(value))]


# ── flaws ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Flaw(NamedTuple):
    """One problem of a record, with its path and the values allowed there."""

    path: Path
    message: str = ""
    known: Sequence[str] = ()
    is_unknown: bool = False
    is_missing: bool = False
    is_branch: bool = False
    """One of several types that the value might have had."""
    breaks_rule: bool = False
    """The value is of the right kind."""


Show = Callable[[Path, Json], str]
"""Formats the value at a path for messages."""


def flaws_of(
    error: ValidationError, record: Json, of: Any, show: Show = lambda _, value: describe(value)
) -> list[Flaw]:
    """Convert pydantic's errors about a record to flaws in our words, in the order of the record."""
    flaws = [_flaw(details, record, of, show) for details in error.errors(include_url=False, include_input=False)]
    flaws = sorted(_without_branches(flaws), key=partial(_order, record, {}))
    # A key that is missing because it was mistyped is one problem, not two.
    mistyped: set[tuple[str | int | None, ...]] = set()
    unknown = [flaw for flaw in flaws if flaw.is_unknown]
    # Looks for similar keys are slow, and no more of them are shown.
    for flaw in unknown[:MOST_OF_A_RECORD]:
        meant = suggestion(str(flaw.path[-1]), flaw.known, cutoff=KEY_CUTOFF)
        mistyped.add((*flaw.path[:-1], meant))
    return [flaw for flaw in flaws if not (flaw.is_missing and flaw.path in mistyped)]


def mended(error: ValidationError, record: Json, of: Any, *, takes_whole_floats: bool) -> Json:
    """Return the refused record without nulls of optional keys and, with `takes_whole_floats`, with 3.0 as 3."""
    for details in error.errors(include_url=False, include_context=False, include_input=False):
        place = _follow(details["loc"], record, of)
        above = _follow(place.path[:-1], record, of)
        is_float = details["type"] == "int_type" and isinstance(place.value, float)
        if place.value is None and place.path and place.path[-1] in known_keys(above.of):
            record = _replaced(record, place.path, ...)
        elif is_float and takes_whole_floats and place.value.is_integer():
            record = _replaced(record, place.path, int(place.value))
    return record


def _replaced(record: Any, path: Path, value: Any) -> Json:
    """Return the record with another value at a path; `...` removes the key."""
    key, *inner = path
    if inner:
        value = _replaced(record[key], tuple(inner), value)
    changed: Any = dict(record) if isinstance(record, Mapping) else list(record)
    if value is ...:
        del changed[key]
    else:
        changed[key] = value
    return changed


_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
_MISSING = frozenset({"missing", "missing_argument", "missing_keyword_only_argument"})


def _flaw(details: Mapping[str, Any], record: Json, of: Any, show: Show) -> Flaw:
    kind = details["type"]
    steps = details["loc"]
    if kind in _UNKNOWN or kind in _MISSING:
        parent = _follow(steps[:-1], record, of)
        path = (*parent.path, steps[-1])
        if kind in _UNKNOWN:
            return Flaw(path, known=known_keys(parent.of), is_unknown=True, is_branch=parent.is_branch)
        return Flaw(path, is_missing=True, is_branch=parent.is_branch)
    place = _follow(steps, record, of)
    message = _message(details, place, show)
    return Flaw(place.path, message, is_branch=place.is_branch, breaks_rule=_is_of_kind(kind))


class _Place(NamedTuple):
    path: Path
    value: Json
    of: Any
    is_branch: bool


def _follow(steps: Sequence[str | int], value: Json, of: Any) -> _Place:
    """Follow pydantic's steps to a place; steps that name a member of a union are not part of the record."""
    path: list[str | int] = []
    is_branch = False
    for step in steps:
        if _holds(value, step):
            path.append(step)
            value = value[step]
            of = inner_type(of, step)
        else:
            is_branch = True
    return _Place(tuple(path), value, of, is_branch)


def _message(details: Mapping[str, Any], place: _Place, show: Show) -> str:
    kind = details["type"]
    of = place.of
    if kind == "value_error":
        return str(details["ctx"]["error"])
    if _is_of_kind(kind) and expects(of).broken:
        return expects(of).broken
    is_empty = kind == "too_short" and not place.value
    value = "an empty list" if is_empty else show(place.path, place.value)
    if kind == "finite_number" and not isinstance(place.value, int):
        return f"is {value}, expected a finite number"
    message = f"is {value}, expected {type_in_words(of)}"
    names = [choice for choice in choices(of) if isinstance(choice, str)]
    if isinstance(place.value, str) and names:
        close = suggestion(place.value, names, cutoff=KEY_CUTOFF)
        if close:
            message += f"; did you mean {close!r}?"
    return message


def _is_of_kind(problem: str) -> bool:
    return not (problem.endswith(("_type", "_parsing", "_from_float")) or problem == "literal_error")


def _without_branches(flaws: Collection[Flaw]) -> list[Flaw]:
    """Keep, for a value of a union type, the problems inside one member type, else the problem of the whole value.

    A rule broken as one of the types takes precedence over not being another type.
    """
    distinct: dict[tuple[Path, str], Flaw] = {}
    more_exact: set[Path] = set()
    """Values about which another flaw says more: one inside them, or a broken rule."""
    for flaw in flaws:
        distinct[flaw.path, flaw.message] = flaw
        if flaw.breaks_rule:
            more_exact.add(flaw.path)
        if flaw.is_branch:
            more_exact.update(flaw.path[:length] for length in range(len(flaw.path)))
    return [flaw for flaw in distinct.values() if flaw.breaks_rule or not (flaw.is_branch and flaw.path in more_exact)]


def _order(record: Json, positions: dict[int, Mapping[str | int, int]], flaw: Flaw) -> list[float]:
    """Return the position of a flaw's path in a record; missing keys come at the end of their object."""
    order = list[float]()
    for step in flaw.path[:-1] if flaw.is_missing else flaw.path:
        if isinstance(record, Mapping):
            # By identity, once an object: its keys may be as many as its problems.
            if id(record) not in positions:
                positions[id(record)] = {key: position for position, key in enumerate(record)}
            order.append(positions[id(record)][step])
        else:
            order.append(int(step))
        record = record[step] if _holds(record, step) else None
    return [*order, math.inf] if flaw.is_missing else order


def _holds(value: Json, step: str | int) -> bool:
    if isinstance(value, Mapping):
        return step in value
    return isinstance(value, Sequence) and isinstance(step, int) and step < len(value)
