"""What the columns of a foreign file mean, decided once for all of its rows, from their names and values together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_rageval.cases.answerability import Sign
from pytest_rageval.cases.exchange.column_values import (
    KEPT,
    Column,
    doubt,
    is_weak,
    may_grade,
    meaning_by_name,
    place_within_metadata,
    places_or_ids,
    proved,
)
from pytest_rageval.cases.exchange.flag_marks import answerable_of
from pytest_rageval.cases.exchange.gold_objects import are_grades, is_grades
from pytest_rageval.cases.exchange.id_columns import choose_id
from pytest_rageval.cases.exchange.map_hints import map_option
from pytest_rageval.cases.exchange.numbered import numbered_columns
from pytest_rageval.cases.exchange.printed import is_nothing
from pytest_rageval.cases.exchange.sign_columns import FoundSigns, find_signs
from pytest_rageval.cases.keys import KEYS
from pytest_rageval.cases.names import (
    ABSTAINED,
    ALTERNATIVES,
    ANSWER,
    ANSWERABLE,
    CONTEXTS,
    FACTS,
    GIVEN,
    GRADES,
    IDS,
    OF_SYSTEM,
    PAGES,
    PLACES,
    QUESTION,
    RETRIEVED,
    RETRIEVED_IDS,
    RETRIEVED_PATHS,
    field_of,
    is_plain_answer,
    means_alternatives,
    name_words,
)
from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import NOTHING, Json

MOST_COLUMNS = 2_000
"""Members that are looked at: what a file has beyond them goes into the metadata."""
Leaves = Mapping[str, Json]
"""The members of a row by path."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What the members of a file's rows mean.

    meanings   the field of each path; a path without one goes into the metadata
    signs      the columns that say whether there is an answer, the clearest first
    questions  what nobody but the user can decide, a line each
    no_gold    the columns that are never proposed as gold: flags, numbers, behaviour
    numbered   the columns that are numbered with others of one field: each holds one value
    notes      what was decided and may surprise, a line each
    marks      what the ticks and blank cells of a column of signs say about an answer
    """

    meanings: Mapping[str, str] = field(default_factory=dict)
    signs: Mapping[str, Sign] = field(default_factory=dict)
    questions: tuple[str, ...] = ()
    no_gold: frozenset[str] = frozenset()
    numbered: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    marks: Mapping[str, Mapping[str, bool | None]] = field(default_factory=dict)

    def answerable(self, path: str, value: Json) -> bool | None:
        """Return whether a value of a column of signs says that there is an answer; None if it says nothing."""
        return answerable_of(self.marks.get(path, NOTHING), self.signs[path], value)


def decide_columns(
    rows: Sequence[Leaves],
    fields: Mapping[str, str] = NOTHING,
    covered: Collection[str] = (),
    mapped: Collection[str] = (),
    whole_names: Collection[str] = (),
    *,
    has_answer: bool = False,
    is_of_system: bool = False,
) -> Columns:
    """Decide what each member of the rows means.

    fields        the expressions by field that a user or a format gave
    covered       the members that the user's expressions name, which mean nothing else
    mapped        the fields of the user's expressions: no other column means one of them
    whole_names   names with points in them
    has_answer    the rows have right answers elsewhere, such as in promptfoo's checks
    is_of_system  names that do not say whose an answer is mean the system's
    """
    columns = _columns_of(rows, covered, whole_names)
    if is_of_system:
        meanings = {}
        for path, column in columns.items():
            meaning = _of_system(column)
            if meaning:
                meanings[path] = meaning
        decided = Columns(meanings)
    else:
        decided = _Decision(columns, len(rows), fields, has_answer=has_answer).result()
    if not mapped:
        return decided
    others = {path: meaning for path, meaning in decided.meanings.items() if meaning not in mapped}
    return replace(decided, meanings=others)


def _columns_of(rows: Sequence[Leaves], covered: Collection[str], whole_names: Collection[str]) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for number, leaves in enumerate(rows):
        for path, value in _with_metadata(leaves):
            if path not in columns:
                is_covered = any(path == root or path.startswith(f"{root}.") for root in covered)
                if is_covered or len(columns) >= MOST_COLUMNS:
                    continue
                columns[path] = Column(path, is_whole=path in whole_names)
            if not is_nothing(value):
                columns[path].values[number] = value
    return columns


def _with_metadata(leaves: Leaves) -> Iterator[tuple[str, Json]]:
    """Yield the members of a row, and those of its metadata, which may say whether there is an answer."""
    for path, value in leaves.items():
        yield path, value
        if path in KEPT and isinstance(value, dict):
            for name, inner in value.items():
                yield f"{path}.{name}", inner


_SAID_BY_SYSTEM: Mapping[str | None, str] = {
    ANSWER: GIVEN,
    CONTEXTS: RETRIEVED,
    PLACES: RETRIEVED_PATHS,
    IDS: RETRIEVED_IDS,
}
"""What names that do not say whose they are mean in an answers file."""


def _of_system(column: Column) -> str | None:
    if name_words(column.name) in ("abstained", "is abstained"):
        return ABSTAINED
    meaning = meaning_by_name(column.path)
    if column.holds_scores(meaning):
        return None
    if meaning == ANSWER and not is_plain_answer(column.path):
        return ANSWER
    if meaning in (PLACES, IDS):
        meaning = places_or_ids(column)
    return _SAID_BY_SYSTEM.get(meaning, meaning)


class _Decision:
    """One decision about the columns of a file."""

    def __init__(
        self, columns: Mapping[str, Column], rows: int, mapped: Mapping[str, str], *, has_answer: bool
    ) -> None:
        self._columns = columns
        self._rows = rows
        self._mapped = mapped
        self._has_answer = has_answer or ANSWER in mapped
        self._meanings: dict[str, str] = {}
        self._signs: dict[str, Sign] = {}
        self._questions: list[str] = []
        self._no_gold: set[str] = set()
        self._numbered: dict[str, str] = {}
        self._notes: list[str] = []

    def result(self) -> Columns:
        signs = FoundSigns()
        flagged = self._mapped.get(ANSWERABLE, "").replace('"', "")
        # A column that somebody names is read as one that was recognised: with its opposite, marks and verbs.
        if ANSWERABLE not in self._mapped or flagged in self._columns:
            signs = find_signs(self._columns, self._rows, flagged or None)
        self._signs = signs.signs
        self._no_gold = signs.no_gold
        self._questions += signs.questions
        for path, column in self._columns.items():
            meaning = None if path.partition(".")[0] in KEPT else self._meaning(column)
            if meaning is not None:
                self._meanings[path] = meaning
        # After all columns: the metadata count only if none of them names a document.
        self._look_into_metadata()
        self._number()
        self._part_answers()
        if self._meanings.get("answer") == GIVEN and self._meanings.get("contexts") == CONTEXTS:
            self._meanings["contexts"] = RETRIEVED  # Ragas' former name for retrieved texts
        self._choose_id()
        for meaning in dict.fromkeys(self._meanings.values()):
            self._choose(meaning)
        order = list(_CLEAREST_FIRST)
        in_order = dict(sorted(self._signs.items(), key=lambda item: order.index(item[1])))
        return Columns(
            meanings=self._meanings,
            signs=in_order,
            questions=tuple(self._questions),
            no_gold=frozenset(self._no_gold),
            numbered=frozenset(self._numbered),
            notes=tuple(self._notes),
            marks=signs.marks,
        )

    # ── what a name and its values mean ───────────────────────────────────────────────────────────────────────

    def _meaning(self, column: Column) -> str | None:
        """Return the field of a column by its name, unless its values are of another kind."""
        sign = self._signs.get(column.path)
        if column.name in self._no_gold and sign != "kind" and column.path not in KEYS:
            return None
        if column.path in self._signs and sign != "kind":
            return None
        if may_grade(column.name) and column.every(is_grades):
            return IDS
        if may_grade(column.name) and column.every(are_grades):
            return GRADES
        meaning = meaning_by_name(column.path)
        meaning = proved(column, meaning)
        is_other = meaning is None and field_of(column.name) in (ANSWER, PAGES, FACTS)
        if is_other or column.holds_scores(field_of(column.name)):
            self._no_gold.add(column.name)
        return meaning

    def _look_into_metadata(self) -> None:
        """Take the document that the metadata name, where nothing else of the file names one."""
        if not {PLACES, IDS}.isdisjoint((*self._meanings.values(), *self._mapped)):
            return
        within = {path: column for path, column in self._columns.items() if path.partition(".")[0] in KEPT}
        found = {}
        for path, column in within.items():
            place = place_within_metadata(column)
            if place:
                found[path] = place
        if not found:
            return
        self._meanings |= found
        for path, column in within.items():
            if proved(column, field_of(column.name)) == PAGES:
                self._meanings[path] = PAGES

    def _number(self) -> None:
        """Find the columns that are numbered with others of one field."""
        self._numbered = numbered_columns(self._meanings)

    def _part_answers(self) -> None:
        """Tell the right answers from the system's, and more right ones from the first."""
        answers = [path for path, meaning in self._meanings.items() if meaning == ANSWER]
        named = [path for path in answers if not is_weak(path) and not means_alternatives(path)]
        for path in answers:
            if path in self._numbered and is_weak(path) and (named or self._has_answer):
                del self._meanings[path]  # the choices of a quiz, beside the right one
                self._no_gold.add(self._columns[path].name)
            elif self._numbered.get(path, path) != path:
                self._meanings[path] = ALTERNATIVES
        answers = [path for path in answers if self._meanings.get(path) == ANSWER]
        for path in answers:
            if self._is_boolean(path):
                del self._meanings[path]
            elif means_alternatives(path) and self._columns[path].every(lambda value: isinstance(value, list)):
                self._meanings[path] = ALTERNATIVES
            elif is_weak(path) and (named or self._has_answer):
                self._meanings[path] = GIVEN
            elif is_weak(path) and (others := self._signs_of_a_run()):
                self._questions.append(
                    f"{path} is the right answer or the system's (beside {listed(others, 3)}): "
                    f"{map_option(GIVEN, path)} or {map_option(ANSWER, path)}"
                )
                self._meanings[path] = GIVEN

    def _is_boolean(self, path: str) -> bool:
        """Return True for a column of true and false where an answer should be, and ask what it means."""
        column = self._columns[path]
        if not column.every(lambda value: isinstance(value, bool)):
            return False
        self._no_gold.add(column.name)
        as_text = f"{map_option(ANSWER, f'to_string({column.expression})')} if it is the right answer"
        self._questions.append(
            f"{path} holds true and false where a text should be: {map_option(ANSWERABLE, path)} if it says "
            f"whether there is an answer, {as_text}"
        )
        return True

    def _signs_of_a_run(self) -> list[str]:
        """Return the columns that only a run of a system writes."""
        return [column.name for column in self._columns.values() if column.values and self._is_of_run(column)]

    def _is_of_run(self, column: Column) -> bool:
        return self._meanings.get(column.path) in OF_SYSTEM or name_words(column.name) in _OF_RUNS

    # ── one column a field ────────────────────────────────────────────────────────────────────────────────────

    def _choose_id(self) -> None:
        """Keep the best column of ids."""
        candidates = [path for path, meaning in self._meanings.items() if meaning == "id"]
        others = [path for path in self._columns if path not in self._meanings and path.partition(".")[0] not in KEPT]
        has_gold = self._has_answer or bool(self._signs) or not _GOLD.isdisjoint(self._meanings.values())
        chosen = choose_id(
            [self._columns[path] for path in candidates],
            [self._columns[path] for path in others],
            self._rows,
            self._is_unique,
            has_gold=has_gold,
        )
        if chosen.note:
            self._notes.append(chosen.note)
        for path in candidates:
            del self._meanings[path]
        if chosen.path is not None:
            self._meanings[chosen.path] = "id"

    def _is_unique(self, column: Column) -> bool:
        """Return True if no value stands in two rows, unless the rows are the same."""
        first_row: dict[str, int] = {}
        for row, value in column.values.items():
            first = first_row.setdefault(str(value), row)
            if first != row and not self._are_same(first, row):
                return False
        return True

    def _are_same(self, first: int, second: int) -> bool:
        return all(column.values.get(first) == column.values.get(second) for column in self._columns.values())

    def _choose(self, meaning: str) -> None:
        """Keep the best column of a field, and those that never stand beside it; ask where two are as good."""
        if meaning in _SEVERAL:
            return
        paths = [path for path, each in self._meanings.items() if each == meaning]
        # Of numbered columns the first one stands for all of them.
        columns = [self._columns[path] for path in paths if self._numbered.get(path, path) == path]
        filled = [column for column in columns if column.values]
        ranked = sorted(filled or columns[:1], key=lambda column: doubt(column, meaning))
        kept: list[Column] = []
        for column in ranked:
            rival = next((other for other in kept if column.is_beside(other)), None)
            if rival is None:
                kept.append(column)
            elif self._is_rival(column, rival, meaning):
                self._questions.append(_two_columns(meaning, rival.path, column.path))
        for path in paths:
            first_of_numbered = self._numbered.get(path, path)
            if self._columns[first_of_numbered] not in kept:
                del self._meanings[path]

    def _is_rival(self, column: Column, chosen: Column, meaning: str) -> bool:
        """Return True if a column could be a question or an answer as well as the chosen one, and says otherwise."""
        if meaning not in (QUESTION, ANSWER) or meaning in self._mapped:
            return False
        return doubt(column, meaning) == doubt(chosen, meaning) and column.differs_from(chosen)


_GOLD = frozenset({ANSWER, FACTS, IDS, PLACES, CONTEXTS})
_CLEAREST_FIRST: tuple[Sign, ...] = ("answerable", "unanswerable", "behaviour", "kind")
_OF_RUNS = frozenset(
    {"latency", "latency ms", "latency s", "model", "model name", "llm", "tokens", "cost", "faithfulness", "elapsed",
     "answer relevancy", "answer relevance", "context precision", "context recall", "response time", "trace id",
     "hallucination", "generation time", "duration", "duration ms", "prompt tokens", "completion tokens"}
)  # fmt: skip
"""Columns that a run of a system writes, and no person."""
_SEVERAL = frozenset({FACTS, ALTERNATIVES, "id", "tags"})
"""Fields to which several columns contribute, or whose column is chosen otherwise."""


def _two_columns(meaning: str, first: str, second: str) -> str:
    what = {QUESTION: "the question", ANSWER: "the right answer"}[meaning]
    return (
        f"{first} and {second} could both be {what}, and differ: "
        f"{map_option(meaning, first)} or {map_option(meaning, second)}"
    )
