"""Formats of other tools: a table of how to recognise each and where its fields are, the readers, the writers.

A format is a row of FORMATS. What its expressions do not name is read by the names of the members (`cases/names.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jmespath

from pytest_rageval.cases.answerability import sign_of
from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.cases.exchange.case_rows import PlacedRow
from pytest_rageval.cases.exchange.columns import Columns
from pytest_rageval.cases.exchange.conversations import MTRAG, TURNS, conversations_in
from pytest_rageval.cases.exchange.exchange import Answers, OtherTestSet, ToolFiles
from pytest_rageval.cases.exchange.foreign_rows import ForeignRow, columns_of, foreign_row
from pytest_rageval.cases.exchange.map_hints import map_option
from pytest_rageval.cases.exchange.mapped_fields import expressions_for
from pytest_rageval.cases.exchange.ragtruth import RESPONSES, SOURCES, is_ragtruth, read_ragtruth
from pytest_rageval.cases.exchange.reading import RowReading
from pytest_rageval.cases.exchange.retrieval_sets import is_topics, read_beir, read_trec, write_beir, write_trec
from pytest_rageval.cases.exchange.row_files import rows_in, rows_of_questions
from pytest_rageval.cases.exchange.tables import SEPARATORS, RowReport
from pytest_rageval.cases.exchange.tool_cases import (
    write_csv,
    write_deepeval,
    write_promptfoo,
    write_ragas,
    write_squad,
)
from pytest_rageval.cases.names import (
    ANSWER,
    CONTEXTS,
    FACTS,
    GIVEN,
    IDS,
    OF_SYSTEM,
    PLACES,
    QUESTION,
    RETRIEVED,
    field_of,
)
from pytest_rageval.errors import CaseError
from pytest_rageval.io.messages import Finding, Unsound
from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import NOTHING, NOWHERE, EvalCase, Json
from pytest_rageval.text import counted


class Format(NamedTuple):
    """A format of rows: an expression (JMESPath) that is true of its rows, and one for each field that names hide."""

    name: str
    when: str
    fields: Mapping[str, str] = NOTHING


FORMATS = (
    Format("promptfoo", "vars || keys(@)[?starts_with(@, '__expected')]", {QUESTION: "vars", CONTEXTS: "vars.context"}),
    Format("openai-evals", "input[0].role && ideal", {QUESTION: "input", ANSWER: "ideal"}),
    Format(
        "openai-evals",
        "type(item) == 'object'",
        {QUESTION: "item", ANSWER: "item.ground_truth || item.ideal || item.expected"},
    ),
    Format(
        "mlflow",
        "(inputs || request) && (expectations || expected_retrieved_context)",
        {
            QUESTION: "inputs || request",
            ANSWER: "expectations.[expected_response, expected_answer, ground_truth][] | [0]",
            FACTS: "expectations.expected_facts || expected_facts",
            PLACES: "(expectations.expected_retrieved_context || expected_retrieved_context)[].doc_uri",
            CONTEXTS: "(expectations.expected_retrieved_context || expected_retrieved_context)[].content",
            GIVEN: "outputs || response",
            RETRIEVED: "retrieved_context",
        },
    ),
    Format("pydantic-evals", "inputs && (expected_output || evaluators)", {"id": "name", QUESTION: "inputs"}),
    Format("langsmith", "inputs && outputs", {QUESTION: "inputs", ANSWER: "outputs"}),
    Format("langfuse", "input && expectedOutput", {QUESTION: "input", ANSWER: "expectedOutput"}),
    Format("phoenix", "type(input) == 'object' && output", {QUESTION: "input", ANSWER: "output"}),
    Format("deepeval", "input && (contains(keys(@), 'expected_output') || contains(keys(@), 'actual_output'))"),
    Format("inspect", "input && target", {QUESTION: "input", ANSWER: "target"}),
    Format("braintrust", "input && expected", {QUESTION: "input", ANSWER: "expected"}),
    Format("ragchecker", "query && gt_answer", {"id": "query_id", RETRIEVED: "retrieved_context"}),
    Format("giskard", "question && reference_answer && (reference_context || conversation_history)"),
    Format("trulens", "query && expected_response"),
    Format("llamaindex", "query && (reference_answer || relevant_docs)", {IDS: "relevant_docs"}),
    Format("squad", "question && answers.answer_start || question && contains(keys(@), 'is_impossible')"),
    Format("ragas", "user_input"),
    Format(
        "hotpotqa",
        "supporting_facts",
        {
            CONTEXTS: "context.sentences[*].join(' ', @) || context[*].join(' ', [1])",
            IDS: "supporting_facts.title || supporting_facts[*][0]",
        },
    ),
    Format("messages", "messages[0].role", {QUESTION: "messages"}),
    Format("sharegpt", "conversations[0].from", {QUESTION: "conversations[].{role: from, content: value}"}),
)
WRITERS: Mapping[str, Callable[[Sequence[EvalCase], Answers], ToolFiles]] = {
    "beir": write_beir,
    "csv": write_csv,
    "deepeval": write_deepeval,
    "promptfoo": write_promptfoo,
    "ragas": write_ragas,
    "squad": write_squad,
    "trec": write_trec,
}
READERS = tuple(sorted({"beir", MTRAG, "ragtruth", TURNS, "trec", *(form.name for form in FORMATS)}))


class ReadOptions(NamedTuple):
    """The other files or the split of a test set, and expressions by field for a format that no table has.

    is_sure  takes the first meaning of a column that could have two, where nothing would be read otherwise
    """

    qrels: Path | None = None
    run: Path | None = None
    split: str | None = None
    fields: Mapping[str, str] = NOTHING
    is_sure: bool = False


def read_other(path: Path, name: str, form: str | None = None, options: ReadOptions | None = None) -> OtherTestSet:
    """Read another tool's test set; raise CaseError with every problem, one line each.

    `form` is one of READERS. None detects it: a folder is RAGTruth's by its two files, else BEIR's; a file with qrels,
    a run or topics is TREC's, any other is recognised by the members of its first row.
    """
    options = options or ReadOptions()
    form = form or _form(path, options)
    if form == "beir":
        if not path.is_dir():
            raise CaseError(f"{name} is not a folder; BEIR's test sets are folders with queries.jsonl and qrels/")
        return read_beir(path, name, options.split)
    if form == "ragtruth":
        if not is_ragtruth(path):
            raise CaseError(f"{name} is no folder with {SOURCES} and {RESPONSES}, which RAGTruth consists of")
        return read_ragtruth(path, name, options.split)
    if path.is_dir():
        raise CaseError(f"{name} is a folder; only the test sets of BEIR and RAGTruth are")
    if form == "trec":
        return read_trec(path, name, options.qrels, options.run)
    report = RowReport(name, has_lines=path.suffix.lower() in SEPARATORS)
    rows = rows_of_questions(path, report)
    # Expressions of the user name the parts of single questions.
    conversations = None if options.fields else conversations_in(rows, form, report)
    if conversations is not None:
        return conversations
    return _TestSetReader(report, form, options, path.parent).read(rows)


def _form(path: Path, options: ReadOptions) -> str | None:
    if path.is_dir():
        return "ragtruth" if is_ragtruth(path) else "beir"
    return "trec" if options.qrels is not None or options.run is not None or is_topics(path) else None


def format_of(row: Mapping[str, Json], name: str | None = None) -> Format | None:
    """Return the first format that a row is of, among those of this name if one is given."""
    candidates = [form for form in FORMATS if name in (None, form.name)]
    found = next((form for form in candidates if jmespath.search(form.when, row)), None)
    return found or (candidates[0] if name and candidates else None)


MOST_PROBLEMS = 1_000
"""Number of problems after which reading stops."""


class _TestSetReader:
    """Reads the rows of a test set: first what its columns mean, then row by row; keeps what they give."""

    def __init__(self, report: RowReport, name: str | None, options: ReadOptions, folder: Path) -> None:
        self._report = report
        self._name = name
        self._mapped = options.fields
        self._folder = folder
        self._is_sure = options.is_sure
        self._form: Format | None = None
        self._columns = Columns()
        self._cases: dict[str, dict[str, Json]] = {}
        self._answers: list[dict[str, Json]] = []
        self._names: dict[str, None] = {}
        self._used: dict[str, str] = {}
        self._kept: dict[str, str] = {}
        """What went into the metadata, with its path in the rows."""
        self._unused: Counter[str] = Counter()
        self._notes: Counter[str] = Counter()
        self._questions: Counter[str] = Counter()
        self._repeated = 0
        self._has_own = False
        """Whether a row is a case in our own format."""

    def read(self, rows: Sequence[PlacedRow]) -> OtherTestSet:
        """Return the test set; raise CaseError with what is wrong with it, or has to be asked."""
        self._mapped = expressions_for(self._mapped, rows)
        # Who names the question names the parts of a format of their own; else the format goes on to hold.
        if rows and QUESTION not in self._mapped:
            self._form = format_of(rows[0][1], self._name)
        fields = {**(self._form.fields if self._form else NOTHING), **self._mapped}
        taken = [foreign_row(row, self._folder, may_be_own=not fields) for _, row in rows]
        self._columns = columns_of(taken, fields, self._mapped)
        self._questions.update(self._columns.questions)
        for (place, row), each in zip(rows, taken, strict=True):
            self._names |= dict.fromkeys(row if isinstance(place, int) else ())
            self._read_row(place, each, fields)
            if len(self._report) >= MOST_PROBLEMS:  # checking a million broken rows takes minutes
                self._report.add_whole(f"what stands behind row {place} was not read")
                break
        return self._test_set()

    def _read_row(self, place: int | str, row: ForeignRow, fields: Mapping[str, str]) -> None:
        """Read one row; report what is wrong with it."""
        reading = RowReading(row, fields, self._folder, self._columns)
        self._questions.update(reading.questions)
        try:
            case_id = case_from_record(reading.case, NOWHERE)[0].id
        except Unsound as unsound:
            self._report.add_row(place, map(reading.as_written, unsound.findings.first), reading.case.get("id"))
            return
        self._used |= {field: name for field, name in reading.used.items() if field not in self._used}
        for name in reading.metadata:
            self._kept.setdefault(name, reading.kept_at.get(name, name))
        self._notes.update(reading.notes)
        self._has_own |= row.own is not None
        record = {"id": case_id} | reading.case
        if case_id not in self._cases:
            self._cases[case_id] = record
            self._unused += reading.unused
            self._answers += [{"id": case_id} | reading.answer] if reading.answer else []
            return
        self._repeated += 1
        if self._cases[case_id] != record:
            twice = (
                "id already used by an earlier row for another case; ids are unique in a file (--map id= reads none)"
            )
            self._report.add_row(place, [Finding((), twice)], case_id)

    def _test_set(self) -> OtherTestSet:
        """Return the test set; raise CaseError with every problem of its rows."""
        report = self._report
        form = self._form
        questions = [f"{report.file}: {question}" for question in self._questions]
        if not self._cases and not len(report):
            report.add_whole("holds no case")
        if len(report):
            unknown = _unknown_columns(report, self._names, self._mapped, self._used, self._columns)
            raise CaseError(*report.problems, *unknown, *questions)
        if questions and not self._is_sure:
            raise CaseError(*questions, f"{report.file}: nothing is converted; --yes takes the first meaning of each")
        of_columns = [f"{report.file}: {note}" for note in self._columns.notes]
        of_rows = [f"{note} ({counted(many, 'row')})" for note, many in self._notes.items()]
        return OtherTestSet(
            list(self._cases.values()),
            self._answers,
            repeated=self._repeated,
            unused=self._unused,
            used=self._used,
            kept=tuple(self._kept),
            kept_at=self._kept,
            form=form.name if form else None,
            is_guessed=not (form or self._mapped or self._has_own),
            no_gold=self._columns.no_gold,
            notes=(*report.notes, *of_columns, *of_rows),
        )


def read_other_answers(path: Path, name: str, mapped: Mapping[str, str]) -> OtherTestSet:
    """Read what a system gave from a file of any names; raise CaseError with every problem, one line each."""
    report = RowReport(name, has_lines=path.suffix.lower() in SEPARATORS)
    answers: list[dict[str, Json]] = []
    used: dict[str, str] = {}
    kept: dict[str, None] = {}
    rows = list(rows_in(path, report))
    fields = expressions_for(mapped, rows)
    taken = [foreign_row(row, path.parent, may_be_own=False) for _, row in rows]
    columns = columns_of(taken, fields, fields, is_of_system=True)
    knows_answers = not OF_SYSTEM.isdisjoint({*columns.meanings.values(), *fields})
    for (place, row), each in zip(rows, taken, strict=True):
        reading = RowReading(each, fields, path.parent, columns)
        names = {key: reading.case[key] for key in ("id", "question") if key in reading.case}
        says_something = any(value is not False for value in reading.answer.values())
        if names and says_something:
            used |= {field: there for field, there in reading.used.items() if field not in used}
            kept |= dict.fromkeys(reading.metadata)
            record = names | reading.answer
            if reading.metadata:
                record["meta"] = reading.metadata
            answers.append(record)
        elif names and knows_answers:
            report.add_row(place, [Finding((), _BLANK_ANSWER)], names.get("id"))
        else:
            lacking = "no id and no question" if says_something else "no answer and no retrieved passages"
            names_there = listed(list(row), 12)
            finding = Finding((), f"holds {lacking}; its names are {names_there}; --map FIELD=NAME says which is which")
            report.add_row(place, [finding])
            break  # every other row lacks the same names
        if len(report) >= MOST_PROBLEMS:
            break
    if not answers and not len(report):
        report.add_whole("holds no answer")
    if len(report):
        raise CaseError(*report.problems)
    return OtherTestSet([], answers, used=used, kept=tuple(kept), is_guessed=not fields, notes=tuple(report.notes))


_BLANK_ANSWER = (
    "the answer is blank and nothing was retrieved; if the system declined, write true into a column abstained, "
    "else leave the row out"
)


def _unknown_columns(
    report: RowReport,
    columns: Iterable[str],
    mapped: Mapping[str, str],
    used: Mapping[str, str],
    decided: Columns,
) -> Iterator[str]:
    """Yield, for a file of no known format, its columns and the line to write."""
    names = list(columns)
    if QUESTION in {*used, *(() if mapped else map(field_of, names))} or not names:
        return
    guesses = {meaning: path for path, meaning in decided.meanings.items()}
    maps = [map_option(field, name) for field, name in ({QUESTION: "COLUMN"} | guesses).items()]
    why = "no column is known to hold the question"
    if QUESTION in mapped:
        why = f"{map_option(QUESTION, mapped[QUESTION])} finds nothing"
    what = f"{report.file}: {why}; columns: {listed(names, 12)}"
    yield f"{what}; say which with {' '.join(maps)}"


def looks_like_gold(kept: Iterable[str], no_gold: Collection[str] = ()) -> dict[str, str]:
    """Return names in the metadata that mean an answer, a context or a source, with the field.

    `no_gold`: names whose values show that they are none, such as flags, pages and numbers.
    """
    others = [name for name in kept if name not in no_gold and sign_of(name) is None]
    meant: dict[str, Any] = {name: field_of(name) for name in others}
    return {name: field for name, field in meant.items() if field in (ANSWER, CONTEXTS, PLACES, IDS, FACTS)}
