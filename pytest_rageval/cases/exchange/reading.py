"""One foreign row read into a case: by the expressions of its format, the other members by their names.

What a system gave becomes a record of an answers file; what has no meaning here goes into `metadata`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.cases.exchange.checks import (
    gold_of_checks,
    single_checks,
    with_files,
    written_checks,
)
from pytest_rageval.cases.exchange.exchange import EXTRA_PARTS, with_extra_parts
from pytest_rageval.cases.exchange.values import (
    TEXTS_OF_OBJECTS,
    as_object,
    conversation_of,
    listed_values,
    places_of,
    reference_of,
    retrieved_chunk,
    texts_of,
    turns_of,
    with_headings,
)
from pytest_rageval.cases.keys import KEYS
from pytest_rageval.cases.names import (
    ANSWER,
    CONTEXTS,
    FACTS,
    GIVEN,
    HEADINGS,
    IDS,
    OF_SYSTEM,
    PLACES,
    QUESTION,
    RETRIEVED,
    RETRIEVED_IDS,
    RETRIEVED_PATHS,
    field_of,
    is_plain_answer,
)
from pytest_rageval.errors import CaseError
from pytest_rageval.io.messages import Finding, Unsound
from pytest_rageval.model import NOTHING, NOWHERE, Json

_SAID_BY_SYSTEM: Mapping[str | None, str] = {CONTEXTS: RETRIEVED, PLACES: RETRIEVED_PATHS, IDS: RETRIEVED_IDS}
"""What names that do not say whose they are mean in an answers file."""
_KEPT = ("metadata", "additional_metadata")
_OURS = ("description", "name", "source_file")
"""Fields that our own exports fill in; ignored on import."""
_STEPS = r"(?:[\w-]+|\"[^\"]+\")(?:\.(?:[\w-]+|\"[^\"]+\"))*"
_SIMPLE = re.compile(_STEPS)


class RowReading:
    """One converted row.

    case, answer  a record of a case file, and one of an answers file without its id
                  (`is_of_system`: names that do not say whose an answer or a context is mean the system's)
    used          the row's names by field
    metadata      what has no meaning here
    unused        promptfoo's checks without a counterpart here, by type
    notes         files that promptfoo names and that were not read, a line each
    """

    def __init__(
        self,
        row: Mapping[str, Json],
        fields: Mapping[str, str] = NOTHING,
        folder: Path = Path(),
        *,
        is_of_system: bool = False,
    ) -> None:
        self.case: dict[str, Json] = {}
        self.answer: dict[str, Json] = {}
        self.used: dict[str, str] = {}
        self.unused: Counter[str] = Counter()
        self.notes: list[str] = []
        self.metadata: dict[str, Json] = {}
        self._names: dict[str, str] = {}
        """The row's names of the case's keys."""
        self._folder, self._is_of_system = folder, is_of_system
        if not (fields or is_of_system) and is_case(row):
            self.case = dict(row)
        else:
            self._read(dict(row), fields)

    def _read(self, row: dict[str, Json], fields: Mapping[str, str]) -> None:
        extra = _extra_of(row)
        if isinstance(variables := row.get("vars"), dict):
            row["vars"], unread, self.notes = with_files(variables, self._folder)
            self.metadata |= {"unread": unread} if unread else {}
        checks = [*single_checks(row.pop("assert", None), row.get("vars")), *written_checks(row)]
        leaves = dict(_leaves(row))
        for field, expression in fields.items():
            self._take_expression(row, field, expression, leaves)
        guesses = {path: _meaning(path) for path in leaves}
        named = {*self.used, *(KEYS.keys() & leaves)}
        named |= {field for path, field in guesses.items() if field and not _is_weak(path, field)}
        has_answer = self._is_of_system or ANSWER in named or "reference" in named or bool(checks)
        for path, value in leaves.items():
            name = path.rpartition(".")[2]
            if value is None or value in ("", []):
                continue
            meant = guesses[path]
            if _is_weak(path, meant):
                meant = GIVEN if has_answer else ANSWER
            if self._is_of_system:
                meant = _SAID_BY_SYSTEM.get(meant, meant)
            if path == "contexts" and has_answer and "answer" in leaves:  # Ragas's former name for retrieved texts
                meant = RETRIEVED
            if path in _KEPT and isinstance(value, dict):
                self.metadata |= value
            elif meant is None or meant in self.used or not self._take(meant, path, value):
                self._keep(path, name, value)
        self._take_checks(checks)
        self._name_places()
        if self.metadata:
            self.case["metadata"] = self.metadata
        self._name_chunks()
        self.case = with_extra_parts(self.case, extra)

    def _take_expression(self, row: Json, field: str, expression: str, leaves: dict[str, Json]) -> None:
        """Take what an expression finds, and drop the leaves that it names."""
        try:
            value = jmespath.search(expression, row)
        except JMESPathError as error:
            raise CaseError(f"{field} = {expression} does not fit a row: {str(error).splitlines()[0]}") from None
        if value is None or value in ("", []):
            return
        path = expression if _SIMPLE.fullmatch(expression) else ""
        path = path.replace('"', "")
        while isinstance(value, dict) and field not in (PLACES, IDS) and (inner := _member(value, field)):
            value, path = value[inner], f"{path}.{inner}"
        roots = [path] if path in leaves or any(leaf.startswith(f"{path}.") for leaf in leaves) else _roots(expression)
        if self._take(field, path or expression, value):
            for leaf in list(leaves):
                if any(leaf == root or leaf.startswith(f"{root}.") for root in roots):
                    del leaves[leaf]

    def _keep(self, path: str, name: str, value: Json) -> None:
        self.metadata[path if name in self.metadata else name] = value

    def _take(self, field: str, path: str, value: Json) -> bool:
        """Convert a value of a field; return False if it is none."""
        if field in OF_SYSTEM:
            return self._take_given(field, path, value)
        keys = self._keys(field, value)
        if keys is None:
            return False
        self.case |= keys
        self._names |= dict.fromkeys(keys, path)
        self.used[field] = path
        return True

    def _keys(self, field: str, value: Json) -> dict[str, Json] | None:
        """Return the keys of a case that hold the value of a field; None if it is none."""
        if field == QUESTION:
            if isinstance(value, list):
                keys, answer = conversation_of(value)
                self.answer |= answer
                return keys
            return {"question": value}
        if field == ANSWER:
            return reference_of(value)
        if field == CONTEXTS:
            texts = texts_of(value if isinstance(value, list) else [value])
            return None if texts is None else {"contexts": texts}
        if field == FACTS:
            texts = texts_of(listed_values(value))
            return None if texts is None else {"expected_key_facts": texts}
        if field in (PLACES, IDS):
            return places_of(value, field)
        if field == HEADINGS:
            return {HEADINGS: value}
        if field == "history":
            return {"history": turns} if (turns := turns_of(value)) else None
        if field == "tags":
            return {"tags": [str(tag) for tag in listed_values(value)]}
        if field == "is_impossible":
            return {"answerable": False} if value else {}
        if field == "id":
            return {"id": str(value)} if isinstance(value, (str, int)) else None
        return {field: value}

    def _take_given(self, field: str, path: str, value: Json) -> bool:
        if field == GIVEN:
            self.answer["answer"] = reference_of(value).get("reference", value)
        elif field == RETRIEVED:
            texts = value if isinstance(value, list) else [value]
            self.answer["retrieved_chunks"] = [retrieved_chunk(text, rank) for rank, text in enumerate(texts, start=1)]
        elif field == RETRIEVED_IDS:
            self.answer[field] = [{"chunk_id": str(chunk_id)} for chunk_id in listed_values(value)]
        else:
            known: Any = places_of(value, PLACES) or {}
            self.answer[field] = known.get("gold_supports") or [{"rel_path": each} for each in listed_values(value)]
        self.used[field] = path
        return True

    def _take_checks(self, checks: Sequence[Mapping[str, Json]]) -> None:
        read = gold_of_checks(checks, self._folder)
        if read.answers and ANSWER not in self.used:
            self._take(ANSWER, "assert", read.answers)
        if read.facts:
            self._take(FACTS, "assert", read.facts)
        if kept := [*read.unused, *read.unread]:
            self.metadata["assert"] = kept
        self.unused = Counter(str(check.get("type")) for check in read.unused)
        self.notes += read.reasons

    def _name_places(self) -> None:
        """Give the gold places their headings, one each; what fits no places is kept as metadata."""
        headings = self.case.pop(HEADINGS, None)
        if headings is None:
            return
        if places := with_headings(self.case.get("gold_supports"), headings):
            self.case["gold_supports"] = places
        else:
            path = self.used.pop(HEADINGS)
            self._keep(path, path.rpartition(".")[2], headings)

    def _name_chunks(self) -> None:
        """Assign ids and places to the retrieved texts; alone they become chunks without text."""
        for field in (RETRIEVED_IDS, RETRIEVED_PATHS):
            if parts := self.answer.pop(field, None):
                chunks = self.answer.get("retrieved_chunks") or [{"rank": rank} for rank in range(1, len(parts) + 1)]
                for chunk, part in zip(chunks, parts, strict=False):
                    chunk.update(part)
                self.answer["retrieved_chunks"] = chunks

    def as_written(self, finding: Finding) -> Finding:
        """Return the problem with the row's own name of the key."""
        first = finding.path[0] if finding.path else None
        if first is None or first not in self._names:
            return finding
        return finding._replace(path=(self._names[str(first)], *finding.path[1:]))


def _extra_of(row: dict[str, Json]) -> Json:
    """Take the parts of a case out of a row that our own export wrote, and the fields that it filled in."""
    extra = row.pop(EXTRA_PARTS, None)
    for name in _KEPT:
        if isinstance(kept := row.get(name), dict) and EXTRA_PARTS in kept:
            extra = kept[EXTRA_PARTS]
            row[name] = {key: value for key, value in kept.items() if key != EXTRA_PARTS}
    extra = as_object(extra)
    for name in _OURS if extra is not None else ():
        row.pop(name, None)
    return extra


def is_case(row: Mapping[str, Json]) -> bool:
    """Return True if the row is a line of our own case format without extra parts."""
    try:
        # Unknown keys are looked for first: the reader names the nearest known ones, which takes a millisecond.
        return row.keys() <= KEYS.keys() and EXTRA_PARTS not in case_from_record(dict(row), NOWHERE)[0].metadata
    except Unsound:
        return False


def _leaves(row: Mapping[str, Json], above: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the members of a row by path; objects are entered, except metadata, spans and the like."""
    for name, value in row.items():
        path = f"{above}{name}"
        is_entered = isinstance(value, dict) and value and not ("answer_start" in value or name in (*_KEPT, "gold"))
        if is_entered and above.count(".") < 2:
            yield from _leaves(value, f"{path}.")
        else:
            yield path, value


def _meaning(path: str) -> str | None:
    """Return the field that a member means: by our own name, else by its own, else by the name of its object."""
    above, _, name = path.rpartition(".")
    if path in KEYS and path not in ("contexts", "tag", "query") and path not in _KEPT:
        return {"reference": ANSWER, "question": QUESTION}.get(path, path)
    if path == "is_impossible":
        return path
    field = field_of(name)
    return field if field is not None or not above else None


def _is_weak(path: str, field: str | None) -> bool:
    """Return True if a name means an answer without saying whose."""
    return path == "answer" or (field == ANSWER and path not in KEYS and is_plain_answer(path))


def _member(value: Mapping[str, Json], field: str) -> str | None:
    """Return the member of an object that holds the value of a field: by its name, or the only one."""
    if field == QUESTION and "messages" in value:
        return "messages"
    meant = (GIVEN, ANSWER) if field in (ANSWER, GIVEN) else (field,)
    named = [name for name in value if field_of(name) in meant]
    if named or len(value) == 1:
        return named[0] if named else next(iter(value))
    return next((name for name in TEXTS_OF_OBJECTS if name in value), None)


def _roots(expression: str) -> list[str]:
    """Return the paths that an expression begins with, such as `a.b` and `c` of `a.b[].d || c`."""
    return [root.replace('"', "") for root in re.findall(rf"(?:^|\|\|\s*|\[\s*|\(\s*)({_STEPS})", expression)]
