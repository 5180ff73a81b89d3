"""One record of a case file becomes one case: its keys are brought to their parts, which pydantic reads at once.

A record that cannot be read so is read again key by key, by the same declarations: that knows everything that is wrong
with it and where, and brings together what two keys say of one part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from pydantic import ValidationError

from pytest_rageval.cases.canonical import case_to_mapping, written_small
from pytest_rageval.cases.keys import IN_GOLD, KEYS, LIFTED, Key, spelling_of
from pytest_rageval.cases.other_names import OTHER_NAMES, QUESTION, key_hint
from pytest_rageval.cases.shapes import CASES
from pytest_rageval.io.messages import Findings, Path, Unsound, spelled
from pytest_rageval.model import NOTHING, NOWHERE, EvalCase, Json, Source

Converted = tuple[EvalCase, tuple[str, ...]]
"""A case, and the spellings that its line combines."""
UNANSWERABLE_CATEGORIES = frozenset({"general", "negative"})
"""Cases of these ask for what the corpus does not hold, where they do not say otherwise."""


def case_from_record(record: dict[str, Json], source: Source) -> Converted:
    """Read one record of a case file; Unsound says all that is wrong with it."""
    try:
        parts = _parts_at_once(record)
        case = _case(parts, source, CASES.validate)
        if next(contradictions(case, parts.given), None) is None:
            return case, parts.spelling
    except (_NotPlainError, ValidationError):
        pass
    parts = _parts_with_care(record)
    return _case(parts, source, CASES.read), parts.spelling


class _Parts(NamedTuple):
    """What a record says of each field of EvalCase and of Gold, as it is written there.

    given     the keys of the record that are there and not null
    spelling  the spellings that they combine
    """

    case: dict[str, Json]
    gold: dict[str, Json]
    given: Collection[str]
    spelling: tuple[str, ...]


def _case(parts: _Parts, source: Source, read: Callable[[Json], EvalCase]) -> EvalCase:
    case, gold = parts.case, parts.gold
    case["source"] = source if "id" in case else NOWHERE  # the hash that serves as an id is of the content alone
    if "layers" in parts.spelling and (gold.get("kg_entities") or gold.get("kg_edges")):
        case.setdefault("requires_kg", True)
    # Not where it is wrong: that is still to be said.
    if not _PREFIXES.isdisjoint(parts.given) and gold.get("ids_are_prefixes", False) is False:
        gold["ids_are_prefixes"] = True
    if gold:
        case["gold"] = gold
    made = with_what_follows(read(case), parts.given)
    return made if "id" in case else replace(made, id=_hash_id(made), source=source)


_PREFIXES = frozenset({"relevant_ids", "irrelevant_ids"})


def _hash_id(nameless: EvalCase) -> str:
    """Twelve hex digits from the content: the same however the row is spelled, and wherever it stands."""
    return hashlib.sha256(written_small(case_to_mapping(nameless)).encode()).hexdigest()[:12]


# ── at once ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class _NotPlainError(Exception):
    """The record has to be read key by key: something is wrong with it, or two keys give one part."""


def _parts_at_once(record: Mapping[str, Json]) -> _Parts:
    line = _without_nulls(record, KEYS)
    inner: Mapping[str, Json] = NOTHING
    if "gold" in line:
        if not isinstance(line["gold"], dict):
            raise _NotPlainError
        inner = _without_nulls(line["gold"], IN_GOLD)
    plan = _plan(tuple(line), tuple(inner))
    for key, kind in plan.kinds:
        if type(line[key]) is not kind:
            raise _NotPlainError
    case = {part: line[key] for key, part in plan.case}
    gold = {part: line[key] for key, part in plan.gold}
    if inner:
        gold |= {part: inner[key] for key, part in plan.in_gold}
    if "metadata" in case:
        _lift(case)
    if "tag" in case:
        _join_tag(case)
    return _Parts(case, gold, plan.given, plan.spelling)


_Steps = tuple[tuple[str, str], ...]
"""Which key gives which part."""


class _Plan(NamedTuple):
    """How lines with the same keys become parts: of the case, of its gold on the line and in the `gold` object.

    `kinds` are the keys whose type is narrower than the part's.
    """

    given: Set[str]
    spelling: tuple[str, ...]
    case: _Steps
    gold: _Steps
    in_gold: _Steps
    kinds: tuple[tuple[str, type], ...]


@lru_cache(maxsize=512)  # what raises is not kept: plans have known keys only, and so are small
def _plan(given: tuple[str, ...], in_gold: tuple[str, ...]) -> _Plan:
    """The plan for lines with these keys, none of them null."""
    if not (KEYS.keys() >= set(given) and IN_GOLD.keys() >= set(in_gold)):
        raise _NotPlainError
    keys = [*((name, KEYS[name]) for name in given if name != "gold"), *((name, IN_GOLD[name]) for name in in_gold)]
    if len({key.part for _, key in keys}) < len(keys):
        raise _NotPlainError
    return _Plan(
        frozenset(given),
        spelling_of(given, in_gold),
        tuple((name, key.part) for name, key in keys[: len(keys) - len(in_gold)] if not key.is_gold),
        tuple((name, key.part) for name, key in keys[: len(keys) - len(in_gold)] if key.is_gold),
        tuple((name, IN_GOLD[name].part) for name in in_gold),
        tuple((name, key.kind) for name, key in keys if key.of),
    )


def _without_nulls(record: Mapping[str, Json], keys: Mapping[str, Key]) -> Mapping[str, Json]:
    """The object without those of its keys that are null, which must be known nevertheless."""
    if None not in record.values():
        return record
    if not record.keys() <= keys.keys():
        raise _NotPlainError
    return {key: value for key, value in record.items() if value is not None}


def _lift(case: dict[str, Json]) -> None:
    """Move what the metadata say of the case to where it belongs."""
    metadata = case["metadata"]
    if not isinstance(metadata, dict):
        raise _NotPlainError
    if LIFTED.keys().isdisjoint(metadata):
        return
    for key in LIFTED.keys() & metadata.keys():
        if metadata[key] is None:
            continue
        if key in case:
            raise _NotPlainError
        case[key] = metadata[key]
    case["metadata"] = {key: value for key, value in metadata.items() if key not in LIFTED}


def _join_tag(case: dict[str, Json]) -> None:
    """One label joins the tags; a blank one says nothing."""
    tag, tags = case.pop("tag"), case.get("tags", [])
    if not isinstance(tags, list):
        raise _NotPlainError
    if tag and not tag.isspace() and tag not in tags:
        case["tags"] = [*tags, tag]


# ── with care ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _parts_with_care(record: dict[str, Json]) -> _Parts:
    """The parts of a record; Unsound says all that is wrong with it."""
    claims = _Claims()
    given = claims.take(record, KEYS, (), _NAMES_IN_GOLD)
    inner = claims.case.pop("in_gold", {})
    in_gold = claims.take(inner, IN_GOLD, ("gold",))
    if "metadata" in claims.case:
        metadata = claims.case["metadata"]
        claims.take({key: metadata[key] for key in LIFTED if key in metadata}, LIFTED, ("metadata",))
        claims.case["metadata"] = {key: value for key, value in metadata.items() if key not in LIFTED}
    if "tag" in claims.case:
        _join_tag(claims.case)
    claims.say_contested()
    parts = _Parts(claims.case, claims.gold, given, spelling_of(given, in_gold))
    sound = parts._replace(case={"question": "?", "id": "?"} | claims.case, gold={**claims.gold})
    if "answerable" in claims.broken:
        sound = sound._replace(given=given - {"answerable"})
    case = _case(sound, NOWHERE, CASES.read)
    for (part, *steps), message in contradictions(case, sound.given, claims.broken):
        claims.findings.add((*claims.origins[str(part)], *steps), message)
    is_named_otherwise = any(OTHER_NAMES.get(name.lower()) == QUESTION for name in record)
    if "question" not in claims.case and "question" not in claims.broken and not is_named_otherwise:
        claims.findings.add((), "question is missing")
    if claims.findings:
        raise Unsound(claims.findings)
    return parts


_NAMES_IN_GOLD = tuple(f"gold.{key}" for key in IN_GOLD)


class _Claims:
    """What the keys of one record say of its parts: each key read by itself, with everything that is wrong.

    case, gold  the parts as they are written, None and unsound values left out
    origins     where each part stands in the record
    broken      parts that a key gave and that could not be read
    """

    def __init__(self) -> None:
        self.findings = Findings()
        self.case: dict[str, Json] = {}
        self.gold: dict[str, Json] = {}
        self.origins: dict[str, Path] = {}
        self.broken: set[str] = set()
        self._read: dict[str, Any] = {}
        self._contested: list[tuple[str, Path]] = []

    def take(
        self, record: Mapping[str, Json], keys: Mapping[str, Key], above: Path, elsewhere: Collection[str] = ()
    ) -> Set[str]:
        """Read all keys of an object that stands at `above`; the ones that are known and not null.

        `elsewhere` are names worth suggesting for an unknown key beside those of `keys`.
        """
        for name, value in record.items():
            key = keys.get(name)
            if key is None:
                own, meaning = ("", "") if above else (_remedy(name), key_hint(name))
                self.findings.unknown((*above, name), {*keys, *elsewhere}, own, meaning)
            elif value is not None:
                self._take_part(key, value, (*above, name))
        return {name for name, value in record.items() if value is not None and name in keys}

    def _take_part(self, key: Key, value: Json, path: Path) -> None:
        part, into = key.part, self.gold if key.is_gold else self.case
        try:
            read = key.read(value)
        except Unsound as unsound:
            self.findings.include(path, unsound.findings)
            self.broken.add(part)
            return
        if read is None:
            return
        if part not in into:
            into[part], self._read[part], self.origins[part] = value, read, path
        elif not _agree(part, self._read[part], read):
            self._contested.append((part, path))
        elif part == "answers" and len(read) > len(self._read[part]):
            into[part], self._read[part] = value, read

    def say_contested(self) -> None:
        """Note the parts about which two keys disagree."""
        for part, path in self._contested:
            first = spelled(self.origins[part])
            self.findings.add(path, f"differs from {first}, which says the same thing; keep one")


def _agree(part: str, first: Any, second: Any) -> bool:
    """Do two keys say the same of a part? Also where one repeats one answer of the other's list."""
    if first == second:
        return True
    fewer, more = sorted((first, second), key=len) if part == "answers" else ([], [])
    return len(fewer) == 1 and fewer[0] in more


def _remedy(key: str) -> str:
    if key == "source":
        return "it is filled in while the file is read; leave it out"
    return "put what is your own into 'metadata'"


def with_what_follows(case: EvalCase, given: Collection[str]) -> EvalCase:
    """The case with all that its parts, and the keys that gave them, imply.

    A graded chunk is a relevant chunk. Where no key says whether a case is answerable, one of the categories `general`
    and `negative` is not, unless it names places or ids that hold its answer. In a negative ids case an empty list of
    ids says that nothing may be retrieved; in any other it says nothing.
    """
    gold = case.gold
    chunk_ids = gold.chunk_ids
    if gold.relevance and (graded := [chunk_id for chunk_id, grade in gold.relevance.items() if grade > 0]):
        chunk_ids = tuple(dict.fromkeys((*(chunk_ids or ()), *graded)))
    is_answerable = case.answerable
    if not chunk_ids:
        if not _is_negative_ids_case(case, given):
            chunk_ids = None
        if "answerable" not in given and case.category in UNANSWERABLE_CATEGORIES and not gold.supports:
            is_answerable = False
    if chunk_ids != gold.chunk_ids:
        gold = replace(gold, chunk_ids=chunk_ids)
    if gold is not case.gold or is_answerable is not case.answerable:
        case = replace(case, gold=gold, answerable=is_answerable)
    return case


def contradictions(case: EvalCase, given: Collection[str], broken: Collection[str] = ()) -> Iterator[tuple[Path, str]]:
    """The parts that contradict others, with what is wrong; of what hangs on `broken` parts there is nothing to say."""
    gold = case.gold
    if "chunk_ids" not in broken:
        if gold.relevance:
            for chunk_id in gold.chunk_ids or ():
                if (grade := gold.relevance.get(chunk_id, 1.0)) <= 0:
                    yield (
                        ("relevance", chunk_id),
                        f"is {grade:g}, which says irrelevant, but the chunk ids list it; keep one",
                    )
        if case.answerable and not gold.chunk_ids and _is_negative_ids_case(case, given):
            remedy = "but a negative case without relevant ids has no answer; leave"
            if "answerable" in given:
                yield ("answerable",), f"is true, {remedy} it out, or name the ids"
            else:  # its supports alone make it so
                yield ("supports",), f"say where the answer stands, {remedy} them out, or name the ids"
    if "supports" not in broken and (gold.supports or gold.support_groups or gold.recency_conflict_rule):
        yield from _of_supports(case)


def _of_supports(case: EvalCase) -> Iterator[tuple[Path, str]]:
    supports = case.gold.supports or ()
    for position, group in enumerate(case.gold.support_groups or ()):
        for inner, index in enumerate(group):
            if not 0 <= index < len(supports):
                yield ("support_groups", position, inner), f"is {index}, out of range: {_how_many(len(supports))}"
    if supports and not case.answerable:
        yield (
            ("supports",),
            "contradicts 'answerable': false; leave the supports out, or make the case answerable",
        )
    if case.gold.recency_conflict_rule == "cite_newer" and len(supports) < 2:
        needs = "is 'cite_newer', which needs two supports or more"
        yield ("recency_conflict_rule",), f"{needs}; {_how_many(len(supports))}"


def _is_negative_ids_case(case: EvalCase, given: Collection[str]) -> bool:
    return case.category == "negative" and (case.gold.ids_are_prefixes or "query" in given)


def _how_many(supports: int) -> str:
    if not supports:
        return "the case has no supports"
    return "the case has one support, 0" if supports == 1 else f"the case has {supports} supports, 0 to {supports - 1}"
