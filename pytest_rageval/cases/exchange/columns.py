"""What the columns of a foreign file mean, decided once for all of its rows, from their names and values together."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_rageval.cases.answerability import Sign, answerable_by, behaviour_of, is_negative, sign_of
from pytest_rageval.cases.exchange.column_values import (
    KEPT,
    Column,
    doubt,
    doubt_of_id,
    last_name,
    may_grade,
    meaning_by_name,
    places_or_ids,
    proved,
)
from pytest_rageval.cases.exchange.gold_objects import are_grades, is_grades
from pytest_rageval.cases.exchange.printed import is_nothing
from pytest_rageval.cases.keys import KEYS
from pytest_rageval.cases.names import (
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
from pytest_rageval.io.messages import shown_value
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
    """

    meanings: Mapping[str, str] = field(default_factory=dict)
    signs: Mapping[str, Sign] = field(default_factory=dict)
    questions: tuple[str, ...] = ()
    no_gold: frozenset[str] = frozenset()


def decide_columns(
    rows: Sequence[Leaves],
    mapped: Mapping[str, str] = NOTHING,
    covered: Collection[str] = (),
    *,
    is_mapped: bool = False,
    has_answer: bool = False,
    is_of_system: bool = False,
) -> Columns:
    """Decide what each member of the rows means.

    mapped        the expressions by field that somebody or a format gave
    covered       the members that they name, which mean nothing else
    is_mapped     somebody gave the expressions: no other column means one of their fields
    has_answer    the rows have right answers elsewhere, such as in promptfoo's checks
    is_of_system  names that do not say whose an answer is mean the system's
    """
    columns = _columns_of(rows, covered)
    if is_of_system:
        meanings = {path: meaning for path, column in columns.items() if (meaning := _of_system(column))}
        return Columns(meanings if not is_mapped else _without(meanings, mapped))
    decided = _Decision(columns, mapped, has_answer=has_answer).result()
    return decided if not is_mapped else replace(decided, meanings=_without(decided.meanings, mapped))


def _without(meanings: Mapping[str, str], fields: Collection[str]) -> dict[str, str]:
    return {path: meaning for path, meaning in meanings.items() if meaning not in fields}


def _columns_of(rows: Sequence[Leaves], covered: Collection[str]) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for number, leaves in enumerate(rows):
        for path, value in _with_metadata(leaves):
            if path not in columns:
                if len(columns) >= MOST_COLUMNS or any(path == root or path.startswith(f"{root}.") for root in covered):
                    continue
                columns[path] = Column(path)
            if not is_nothing(value):
                columns[path].values[number] = value
    return columns


def _with_metadata(leaves: Leaves) -> Iterator[tuple[str, Json]]:
    """Yield the members of a row, and those of its metadata, which may say whether there is an answer."""
    for path, value in leaves.items():
        yield path, value
        if path in KEPT and isinstance(value, dict):
            yield from ((f"{path}.{name}", inner) for name, inner in value.items())


_SAID_BY_SYSTEM: Mapping[str | None, str] = {
    ANSWER: GIVEN,
    CONTEXTS: RETRIEVED,
    PLACES: RETRIEVED_PATHS,
    IDS: RETRIEVED_IDS,
}
"""What names that do not say whose they are mean in an answers file."""


def _of_system(column: Column) -> str | None:
    meaning = meaning_by_name(column.path)
    if meaning == ANSWER and not is_plain_answer(column.path):
        return ANSWER
    if meaning in (PLACES, IDS):
        meaning = places_or_ids(column)
    return _SAID_BY_SYSTEM.get(meaning, meaning)


def _is_weak(path: str) -> bool:
    """Return True if a name means an answer without saying whose."""
    return path == "answer" or (path not in KEYS and is_plain_answer(path))


class _Decision:
    """One decision about the columns of a file."""

    def __init__(self, columns: Mapping[str, Column], mapped: Mapping[str, str], *, has_answer: bool) -> None:
        self._columns, self._mapped = columns, mapped
        self._has_answer = has_answer or ANSWER in mapped
        self._meanings: dict[str, str] = {}
        self._signs: dict[str, Sign] = {}
        self._questions: list[str] = []
        self._no_gold: set[str] = set()

    def result(self) -> Columns:
        self._find_signs()
        for path, column in self._columns.items():
            meaning = None if path.partition(".")[0] in KEPT else self._meaning(column)
            if meaning is not None:
                self._meanings[path] = meaning
        self._part_answers()
        if self._meanings.get("answer") == GIVEN and self._meanings.get("contexts") == CONTEXTS:
            self._meanings["contexts"] = RETRIEVED  # Ragas' former name for retrieved texts
        self._choose_id()
        for meaning in dict.fromkeys(self._meanings.values()):
            self._choose(meaning)
        order = list(_CLEAREST_FIRST)
        signs = dict(sorted(self._signs.items(), key=lambda item: order.index(item[1])))
        return Columns(self._meanings, signs, tuple(self._questions), frozenset(self._no_gold))

    # ── is there an answer? ───────────────────────────────────────────────────────────────────────────────────

    def _find_signs(self) -> None:
        """Find the columns that say whether there is an answer; ask about those that look like it."""
        if ANSWERABLE in self._mapped:
            return
        for path, column in self._columns.items():
            sign = sign_of(column.name) or _sign_of_values(column)
            if sign is None or not column.values:
                continue
            self._no_gold |= {column.name} if sign != "kind" else set()
            read = {row: answerable_by(sign, value) for row, value in column.values.items()}
            if sign == "kind":
                read = {row: False if is_negative(column.values[row]) else flag for row, flag in read.items()}
            unread = [column.values[row] for row, flag in read.items() if flag is None]
            if sign in ("kind", "behaviour") and False not in read.values():
                continue
            if unread and sign == "behaviour" and not any(map(_is_label, unread)):
                continue
            if unread and sign != "kind":
                if _LOOSE_FLAGS & {*name_words(column.name).split()} and len(unread) == len(column.values):
                    continue
                self._questions.append(_unread_sign(column, sign, unread))
            self._signs[path] = sign

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
        if meaning is None and field_of(column.name) in (ANSWER, PAGES, FACTS):
            self._no_gold.add(column.name)
        return meaning

    def _part_answers(self) -> None:
        """Tell the right answers from the system's, and more right ones from the first."""
        answers = [path for path, meaning in self._meanings.items() if meaning == ANSWER]
        named = [path for path in answers if not _is_weak(path) and not means_alternatives(path)]
        for path in answers:
            if self._is_boolean(path):
                del self._meanings[path]
            elif means_alternatives(path) and self._columns[path].every(lambda value: isinstance(value, list)):
                self._meanings[path] = ALTERNATIVES
            elif _is_weak(path) and (named or self._has_answer):
                self._meanings[path] = GIVEN
            elif _is_weak(path) and (others := self._signs_of_a_run()):
                self._questions.append(
                    f"{path} is the right answer or the system's (beside {listed(others, 3)}): "
                    f"--map answer={_quoted(path)} or --map gold.answer={_quoted(path)}"
                )
                self._meanings[path] = GIVEN

    def _is_boolean(self, path: str) -> bool:
        """Return True for a column of true and false where an answer should be, and ask what it means."""
        column = self._columns[path]
        if not column.every(lambda value: isinstance(value, bool)):
            return False
        self._no_gold.add(column.name)
        as_text = f"--map '{ANSWER}=to_string({_quoted(path, within=True)})' if it is the right answer"
        self._questions.append(
            f"{path} holds true and false where a text should be: --map {ANSWERABLE}={_quoted(path)} if it says "
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
        """Keep the best column of ids: `id` itself, else one that names the case and is unique, else any such one."""
        candidates = [path for path, meaning in self._meanings.items() if meaning == "id"]
        chosen = next((path for path in candidates if last_name(path).lower() in ("id", "_id")), None)
        if chosen is None:
            unique = [path for path in candidates if self._is_unique(self._columns[path])]
            chosen = min(unique, key=lambda path: doubt_of_id(self._columns[path].name), default=None)
        for path in candidates:
            if path != chosen:
                del self._meanings[path]

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
        columns = [self._columns[path] for path, each in self._meanings.items() if each == meaning]
        columns = [column for column in columns if column.values] or columns[:1]
        ranked = sorted(columns, key=lambda column: doubt(column, meaning))
        kept: list[Column] = []
        for column in ranked:
            rival = next((other for other in kept if column.is_beside(other)), None)
            if rival is None:
                kept.append(column)
            elif self._is_rival(column, rival, meaning):
                self._questions.append(_two_columns(meaning, rival.path, column.path))
        for path in [path for path, each in self._meanings.items() if each == meaning]:
            if self._columns[path] not in kept:
                del self._meanings[path]

    def _is_rival(self, column: Column, chosen: Column, meaning: str) -> bool:
        """Return True if a column could be a question or an answer as well as the chosen one, and says otherwise."""
        if meaning not in (QUESTION, ANSWER) or meaning in self._mapped:
            return False
        return doubt(column, meaning) == doubt(chosen, meaning) and column.differs_from(chosen)


_CLEAREST_FIRST: tuple[Sign, ...] = ("answerable", "unanswerable", "behaviour", "kind")
_LOOSE_FLAGS = frozenset(["negative", "refusal", "supported", "covered", "scope", "context", "domain"])
"""Words of flags that other columns have, too: those are asked about only if some of their values are flags."""
_OF_RUNS = frozenset(
    {"latency", "latency ms", "latency s", "model", "model name", "llm", "tokens", "cost", "faithfulness", "elapsed",
     "answer relevancy", "answer relevance", "context precision", "context recall", "response time", "trace id",
     "hallucination", "generation time", "duration", "duration ms", "prompt tokens", "completion tokens"}
)  # fmt: skip
"""Columns that a run of a system writes, and no person."""
_SEVERAL = frozenset({FACTS, ALTERNATIVES, "id", "tags"})
"""Fields to which several columns contribute, or whose column is chosen otherwise."""


def _sign_of_values(column: Column) -> Sign | None:
    """Return `behaviour` for a column of expected answers that only says `answer` and `refuse`."""
    is_gold = field_of(column.name) == ANSWER and not _is_weak(column.path)
    verbs = [value for value in column.values.values() if isinstance(value, str)]
    is_verb = is_gold and len(verbs) == len(column.values) and bool(verbs)
    return "behaviour" if is_verb and all(behaviour_of(verb) is not None for verb in verbs) else None


def _is_label(value: Json) -> bool:
    return isinstance(value, str) and len(value) <= 40 and not value.rstrip().endswith((".", "!", "?", "。"))


def _unread_sign(column: Column, sign: Sign, unread: Sequence[Json]) -> str:
    """Return the question about a column that seems to say whether there is an answer, with the lines to write."""
    different = {str(value): value for value in unread}.values()
    several = listed([shown_value(value, 40) for value in different], 3)
    refused = next((value for value in column.values.values() if behaviour_of(value) is False), None)
    # A value that means yes, or one that means no: for the user to replace by the right one.
    example, compared = (refused, "!=") if refused is not None else (next(iter(different)), "==")
    compared = {"==": "!=", "!=": "=="}[compared] if sign == "unanswerable" else compared
    expression = f"{_quoted(column.path, within=True)} {compared} `{json.dumps(example, ensure_ascii=False)}`"
    return (
        f"{column.path} seems to say whether there is an answer, but cannot be read: {several}; say when there is one, "
        f"as in --map '{ANSWERABLE}={expression}', or --map {ANSWERABLE}= if it says no such thing"
    )


def _two_columns(meaning: str, first: str, second: str) -> str:
    what = {QUESTION: "the question", ANSWER: "the right answer"}[meaning]
    return (
        f"{first} and {second} could both be {what}, and differ: "
        f"--map {meaning}={_quoted(first)} or --map {meaning}={_quoted(second)}"
    )


def _quoted(path: str, *, within: bool = False) -> str:
    """Return a path as it is written in `--map`; `within` quotes of the shell."""
    if all(part.isidentifier() and part.isascii() for part in path.split(".")):
        return path
    return f'"{path}"' if within else f"'\"{path}\"'"
