"""L4 Ontology: the rates of inferences that violate constraints and of entities whose types are consistent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from pytest_rageval.errors import SettingsError
from pytest_rageval.language.words import as_label
from pytest_rageval.metrics.ontology.claims import Claims, Validator, Violations, claims_of, types_of
from pytest_rageval.metrics.registry import metric
from pytest_rageval.model import Edge, Json, NotApplicable, Observation, Score, Trace
from pytest_rageval.text import cut, printable

NO_INFERENCES = NotApplicable("the system reports no inferences")
NOTHING_INFERRED = NotApplicable("nothing was inferred")
NO_TYPES = NotApplicable("the system reports no entity types")
NO_ONTOLOGY = NotApplicable("no ontology is configured, and the system reports no violations of its own")
NO_ENTITIES_NAMED = NotApplicable("no ontology is configured, and the system's own violations name no entity")
SHOWN = 10
"""Reasons in a score's detail; its counts cover all of them."""
_LONGEST = 300
"""Characters of a reason."""


# `ontology` is no keyword-only parameter: a run has one ontology for both metrics, which is set like the target and
# bound when the run is planned, not twice among the metrics' options.
@metric(
    layer="L4",
    better="lower",
    needs=("trace",),
    gates=("constraint_violation_rate <= 0.05 tag L4_constraint_violation",),
)
def constraint_violation_rate(obs: Observation, ontology: Validator | None = None) -> Score | NotApplicable:
    """Inferences that violate a constraint of the ontology / inferences.

    In [0, 1], lower is better. An inference violates a constraint if its predicate is not in the ontology, its subject
    or object is of the wrong type (domain, range) or of none, its subject has too few or too many values (cardinality),
    the reverse of a symmetric one is missing, a rule is broken, or it is no triple; each counts once, however many
    constraints it violates. Edges that the trace took from its graph, and premises that an inference names under
    `because`, count as known but are not judged. Without an ontology the violations that the system itself reports
    are counted, at most as many as there are inferences and but for those that name an `entity`, and the score is
    marked `self_reported`. Not applicable where the trace reports no inferences, or is empty of them, or where there is
    neither an ontology nor a report of violations. Source: SHACL validation results per inferred triple.

    One of two inferences has an object of the wrong type: 1 / 2.

    >>> shop = ontology('''
    ... classes = { Brand = {}, Market = { disjoint = ["Brand"] } }
    ... properties = { presentIn = { domain = "Brand", range = "Market" } }
    ... ''')
    >>> types = "moru:Brand onda:Brand korea:Market"
    >>> score("constraint_violation_rate", inferred("moru|presentIn|korea moru|presentIn|onda", types), ontology=shop)
    0.5
    """
    trace = obs.answer.trace
    if trace is None or trace.inferences is None:
        return NO_INFERENCES
    if not trace.inferences:
        return NOTHING_INFERRED
    total = len(trace.inferences)
    if ontology is None:
        if trace.violations is None:
            return NO_ONTOLOGY
        # A system may report more violations than inferences; a rate above 1 is none.
        count = min(total, sum(_entity_named(violation) is None for violation in trace.violations))
        return Score(count / total, {"self_reported": True, "inferences": total, "violating": count})
    violations = _checked(ontology, claims_of(trace)).inferences
    reasons = (
        f"{_shown_inference(trace.inferences[index])}: {reason}"
        for index in sorted(violations)
        for reason in violations[index]
    )
    detail = {"inferences": total, "violating": len(violations), "reasons": list(_bounded(reasons))}
    return Score(len(violations) / total, detail)


@metric(
    layer="L4",
    better="higher",
    needs=("trace",),
    gates=("type_consistency_rate >= 0.90 tag L4_type_inconsistency",),
)
def type_consistency_rate(obs: Observation, ontology: Validator | None = None) -> Score | NotApplicable:
    """Entities whose types are consistent / entities that have a type.

    In [0, 1], higher is better. Types are those of `entity_types` and of linked entities; those of an entity are
    consistent if all are classes of the ontology and no two of them, nor of the classes above them, are disjoint.
    Without an ontology an entity is consistent unless a violation that the system itself reports names it as its
    `entity`, and the score is marked `self_reported`. Not applicable where the trace gives no entity a type, or where
    there is neither an ontology nor a report of violations that names entities (an empty report is one). Source:
    satisfiability of class assertions in OWL 2.

    One of four entities is of two disjoint classes: 3 / 4.

    >>> shop = ontology('classes = { Brand = {}, Market = { disjoint = ["Brand"] } }')
    >>> types = "moru:Brand onda:Brand korea:Market korea:Brand japan:Market"
    >>> score("type_consistency_rate", inferred("", types), ontology=shop)
    0.75
    """
    trace = obs.answer.trace
    types = types_of(trace) if trace is not None else {}
    if trace is None or not types:
        return NO_TYPES
    if ontology is None:
        return _self_reported_consistency(trace, set(types))
    clashes = _checked(ontology, claims_of(trace)).entities
    reasons = (f"{entity}: {reason}" for entity in sorted(clashes) for reason in clashes[entity])
    detail = {"entities": len(types), "inconsistent": len(clashes), "reasons": list(_bounded(reasons))}
    return Score((len(types) - len(clashes)) / len(types), detail)


CHECKED = (constraint_violation_rate, type_consistency_rate)
"""The metrics that take the run's ontology."""


@lru_cache(maxsize=4)
def _checked(ontology: Validator, claims: Claims) -> Violations:
    """Check claims; cached, because both metrics ask about the same trace, one after the other."""
    return ontology.check(claims)


def _self_reported_consistency(trace: Trace, typed: set[str]) -> Score | NotApplicable:
    if trace.violations is None:
        return NO_ONTOLOGY
    named = {_entity_named(violation) for violation in trace.violations} - {None}
    if trace.violations and not named:
        return NO_ENTITIES_NAMED
    count = len(named & typed)
    detail = {"self_reported": True, "entities": len(typed), "inconsistent": count}
    return Score((len(typed) - count) / len(typed), detail)


def _entity_named(violation: Json) -> str | None:
    """Return the label of the entity of a violation that a system reports; None if it is about an inference."""
    entity = violation.get("entity") if isinstance(violation, Mapping) else None
    return as_label(entity) if isinstance(entity, str) else None


def _shown_inference(written: Mapping[str, Json]) -> str:
    parts = [written.get(name) for name in Edge._fields]
    shown = Edge(*map(str, parts)) if None not in parts else dict(written)
    return cut(str(shown), _LONGEST // 2)


def _bounded(reasons: Iterable[str]) -> Iterator[str]:
    """Yield the first reasons, each on one printable line of limited length."""
    for reason in islice(reasons, SHOWN):
        yield cut(printable(" ".join(reason.split())), _LONGEST)


MAX_BYTES = 4 * 2**20
"""Bytes of all files of an ontology together."""


def load_validator(places: Sequence[str], root: Path) -> Validator:
    """Return the validator of one `.toml` or `.json` file, or of `.ttl` files with an ontology and SHACL shapes.

    Paths are relative to `root`. Raises SettingsError with every problem of the files, one line each.
    """
    kinds = {Path(place).suffix.lower() for place in places}
    if kinds != {".ttl"} and (len(places) != 1 or not kinds <= {".toml", ".json"}):
        raise SettingsError(
            f"ontology is {', '.join(map(repr, places)) or 'empty'}; write one .toml or .json file, "
            "or a list of .ttl files with RDF and SHACL shapes"
        )
    texts = _read(places, root)
    validator: Validator
    if kinds == {".ttl"}:
        try:
            from pytest_rageval.metrics.ontology.shapes import shapes_validator
        except ModuleNotFoundError as missing:
            raise SettingsError(
                f"ontology: {', '.join(texts)} needs {missing.name}, which is not installed; "
                "pip install 'pytest-rageval[ontology]', or write the ontology as TOML"
            ) from None
        validator = shapes_validator(texts)
    else:
        from pytest_rageval.metrics.ontology.declared import DeclaredValidator

        validator = DeclaredValidator(places[0], texts[places[0]])
    # With a byte between the files: moving text from one to the next must change it.
    validator.digest = hashlib.sha256(b"".join(text.encode() + b"\0" for text in texts.values())).hexdigest()
    return validator


def _read(places: Sequence[str], root: Path) -> dict[str, str]:
    content: dict[str, str] = {}
    problems = []
    left = MAX_BYTES
    for place in places:
        try:
            with (root / place).open("rb") as file:
                # One byte more than is allowed shows that there is more, without reading all of it.
                data = file.read(left + 1)
            content[place] = data.decode("utf-8-sig")
        except OSError as error:
            problems.append(f"ontology: {place} cannot be read: {error.strerror}; mend the path")
        except UnicodeDecodeError as error:
            problems.append(f"{place}: not UTF-8 at byte {error.start}; save it as UTF-8")
        else:
            left -= len(data)
            if left < 0:
                raise SettingsError(f"{place}: an ontology is at most {MAX_BYTES // 2**20} MiB; keep what is checked")
    if problems:
        raise SettingsError(*problems)
    return content
