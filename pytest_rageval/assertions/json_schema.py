"""JSON Schema of case files: checked before the run, without network, and bounded in time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from pytest_rageval.assertions.patterns import is_found, pattern_problem
from pytest_rageval.errors import OddScoreError
from pytest_rageval.io.messages import Path, describe, format_path, shown_value

LONGEST_SCHEMA = 100_000
"""Characters of a schema."""
LONGEST_CHECK = 1.0
"""Seconds of a check: references to each other can double the work at each step."""
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def schema_problem(schema: Any) -> str | None:
    """Return why a value is no JSON Schema that can be used; None if it is one."""
    if not isinstance(schema, dict | bool):
        return f"is {describe(schema)}, expected a JSON Schema, as in {{'type': 'object', 'required': ['price']}}"
    text = json.dumps(schema)
    if len(text) > LONGEST_SCHEMA:
        return f"has {len(text):,} characters, more than {LONGEST_SCHEMA:,}; shorten the schema"
    for path, key, value, beside in _members(schema, ()):
        problem = _member_problem(key, value, beside)
        if problem is not None:
            return f"{format_path((*path, key))} {problem}"
    from jsonschema import FormatChecker  # here, because few cases have a schema
    from jsonschema.exceptions import SchemaError

    try:
        dialect = _dialect_of(schema)
        # Without formats: the one of patterns is Python's, and ours have another engine.
        dialect.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        place = format_path(tuple(error.absolute_path))
        return f"is no JSON Schema: {place} {_short(error.message)}".replace(":  ", ": ")
    except RecursionError:
        return "is no JSON Schema: it is nested too deeply"
    return _lost_reference(schema, dialect)


def _lost_reference(schema: Any, dialect: Any) -> str | None:
    """Return the first reference that leads nowhere within the schema."""
    from referencing import Registry, Specification
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012, specification_with

    specification: Specification[Any] = specification_with(dialect.META_SCHEMA.get("$schema", ""), default=DRAFT202012)
    own = specification.create_resource(schema)
    resolver = Registry().with_resource(own.id() or "", own).resolver(own.id() or "")
    for path, key, value, _ in _members(schema, ()):
        if key not in _REFERENCES or not isinstance(value, str):
            continue
        try:
            resolver.lookup(value)
        except Unresolvable:
            return f"{format_path((*path, key))} is {shown_value(value)}, which is not in the schema"
    return None


def mismatch(schema: Any, value: Any) -> str:
    """Return how a JSON value breaks a schema that was checked; '' if it fits, or there is no schema.

    Raise OddScoreError where the schema leads nowhere or takes too long: that is neither a match nor a mismatch.
    """
    if schema is None or schema is True:
        return ""
    from jsonschema.exceptions import ValidationError
    from referencing.exceptions import Unresolvable

    validator = _validator_of(json.dumps(schema, sort_keys=True))
    _deadline.at = time.monotonic() + LONGEST_CHECK
    try:
        error = next(iter(validator.iter_errors(value)), None)
    except _TooLong:
        raise OddScoreError(f"assertions: a JSON Schema takes more than {LONGEST_CHECK:g} s; simplify it") from None
    except (Unresolvable, RecursionError, ArithmeticError) as failure:
        why = _short(str(failure) or type(failure).__name__)
        raise OddScoreError(f"assertions: a JSON Schema cannot be followed: {why}; mend it") from None
    if not isinstance(error, ValidationError):
        return ""
    place = format_path(tuple(error.absolute_path))
    return f"{place or 'the JSON'}: {_short(error.message)}"


def _short(message: str) -> str:
    """Return a message of the library, whose values may be of any length, as one short line."""
    return shown_value(message, 200, is_quoted=False)


def _members(schema: Any, path: Path) -> Iterator[tuple[Path, str, Any, Mapping[str, Any]]]:
    """Yield each member of a schema's objects: the path of its object, its key, its value, and the object."""
    pending: list[tuple[Path, Any]] = [(path, schema)]
    while pending:
        place, value = pending.pop()
        if isinstance(value, Mapping):
            for key, inner in value.items():
                yield place, key, inner, value
                pending.append(((*place, key), inner))
        elif isinstance(value, list | tuple):
            for number, inner in enumerate(value):
                pending.append(((*place, number), inner))


def _member_problem(key: str, value: Any, beside: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a reference or a pattern; nothing is fetched, and all patterns are bounded."""
    if key in _REFERENCES and isinstance(value, str) and not value.startswith("#"):
        return f"is {shown_value(value)}, outside of the schema; copy that part into '$defs'"
    if key == "pattern" and isinstance(value, str):
        return pattern_problem(value)
    if key == "patternProperties" and isinstance(value, Mapping):
        problems = (pattern_problem(each) for each in value)
        return next((problem for problem in problems if problem is not None), None)
    if key == "unevaluatedProperties" and "patternProperties" in beside:
        return "stands beside patternProperties, which is not supported; write additionalProperties"
    return None


# ── the library, with our patterns and a deadline ─────────────────────────────────────────────────────────────


class _TooLong(Exception):
    pass


class _Deadline(threading.local):
    """When the check under way must have ended, on the clock of `time.monotonic`."""

    at = 0.0


_deadline = _Deadline()


def _dialect_of(schema: Any) -> Any:
    """Return the library's class for the `$schema` of a schema, the newest one without."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    return validator_for(schema, default=Draft202012Validator)


@lru_cache(maxsize=64)
def _validator_of(schema_text: str) -> Any:
    """Return the validator of a schema, which never looks for a reference outside of it."""
    from referencing import Registry

    schema = json.loads(schema_text)
    dialect = _dialect_of(schema)
    # An empty registry: the default one of the library fetches what it does not know.
    return _bounded(dialect)(schema, registry=Registry(), format_checker=dialect.FORMAT_CHECKER)


@cache
def _bounded(dialect: Any) -> Any:
    """Return a dialect whose patterns are those of this project, and whose every keyword looks at the clock."""
    from jsonschema import validators

    extend: Any = validators.extend
    checks = {name: check for name, check in _OWN_CHECKS.items() if name in dialect.VALIDATORS}
    checks = {**dialect.VALIDATORS, **checks}
    return extend(dialect, {keyword: _timed(check) for keyword, check in checks.items()})


def _timed(check: Any) -> Any:
    def timed(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if time.monotonic() > _deadline.at:
            raise _TooLong
        yield from check(validator, value, instance, schema) or ()

    return timed


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not is_found(pattern, instance):
        yield ValidationError(f"{shown_value(instance)} does not match {shown_value(pattern)}")


def _pattern_properties(validator: Any, properties: Mapping[str, Any], instance: Any, _schema: Any) -> Iterator[Any]:
    if not isinstance(instance, Mapping):
        return
    for pattern, inner in properties.items():
        for name, value in instance.items():
            if is_found(pattern, name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if not isinstance(instance, Mapping):
        return
    patterns = schema.get("patternProperties", ())
    for name, value in instance.items():
        if name in schema.get("properties", ()) or any(is_found(pattern, name) for pattern in patterns):
            continue
        if allowed is False:
            yield ValidationError(f"{shown_value(name)} is not allowed (additionalProperties)")
        elif isinstance(allowed, Mapping):
            yield from validator.descend(value, allowed, path=name)


def _unique_items(_validator: Any, is_wanted: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    """Check by the written values: the library compares each with each other one."""
    from jsonschema.exceptions import ValidationError

    if not is_wanted or not isinstance(instance, list):
        return
    written = {json.dumps(item, sort_keys=True) for item in instance}
    if len(written) < len(instance):
        yield ValidationError(f"{shown_value(instance)} has equal members (uniqueItems)")


_OWN_CHECKS = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
"""Keywords for which the library takes Python's patterns, or quadratic time."""
