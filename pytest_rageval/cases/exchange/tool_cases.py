"""Cases as files for DeepEval, Ragas, promptfoo, SQuAD's script and spreadsheets, with answers if they fit."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence

from pytest_rageval.cases.canonical import case_content
from pytest_rageval.cases.exchange.exchange import EXTRA_PARTS, Answers, ToolFiles, extra_parts, unplaced
from pytest_rageval.cases.exchange.promptfoo_checks import checks_of_assertions, without_doubles
from pytest_rageval.cases.exchange.reading import RowReading
from pytest_rageval.cases.exchange.row_files import squad_row
from pytest_rageval.cases.keys import CELLS
from pytest_rageval.model import Answer, Chunk, EvalCase, Json
from pytest_rageval.model.case_fields import DESCRIPTIVE_NAMES
from pytest_rageval.text import counted

FEWEST = 1e-6
"""The threshold of a set of checks of which one must pass."""


def write_deepeval(cases: Sequence[EvalCase], answers: Answers) -> ToolFiles:
    """Write goldens.json, for `EvaluationDataset.add_goldens_from_json_file`."""
    rows = [_golden(case, answers.get(case.id)) for case in cases]
    return ToolFiles({"goldens.json": [json.dumps(rows, ensure_ascii=False, indent=1)]})


def _golden(case: EvalCase, answer: Answer | None) -> dict[str, Json]:
    row: dict[str, Json] = {
        "input": case.question,
        "actual_output": answer.text if answer else None,
        "expected_output": case.gold.answers[0] if case.gold.answers else None,
        "retrieval_context": _chunk_texts(answer),
        "context": list(case.contexts) if case.contexts else None,
        "name": case.id,
        "comments": None,
        "source_file": case.source.file or None,
        "additional_metadata": {EXTRA_PARTS: {}},
    }
    # What DeepEval has no field for goes there, so that a conversion back gives the same case.
    row["additional_metadata"] = {EXTRA_PARTS: {"id": case.id, **_extra_parts(case, row)}}
    return row


def _extra_parts(case: EvalCase, row: dict[str, Json]) -> dict[str, Json]:
    return extra_parts(case, RowReading(row).case)


def _chunk_texts(answer: Answer | None) -> list[str] | None:
    if answer is None or answer.chunks is None:
        return None
    return [chunk.text or "" for chunk in answer.chunks]


def write_ragas(cases: Sequence[EvalCase], answers: Answers) -> ToolFiles:
    """Write ragas.jsonl, for `EvaluationDataset.from_jsonl`, with the fields of SingleTurnSample."""
    rows = [_sample(case, answers.get(case.id)) for case in cases]
    return ToolFiles({"ragas.jsonl": [json.dumps(row, ensure_ascii=False) for row in rows]})


def _sample(case: EvalCase, answer: Answer | None) -> dict[str, Json]:
    gold = case.gold
    chunks = answer.chunks if answer else None
    ids = [chunk.chunk_id for chunk in chunks or ()]
    row = {
        "id": case.id,
        "user_input": case.question,
        "reference": gold.answers[0] if gold.answers else None,
        "reference_contexts": list(case.contexts or ()) or None,
        "reference_context_ids": list(gold.chunk_ids or ()) or None,
        "response": answer.text if answer else None,
        "retrieved_contexts": _chunk_texts(answer),
        "retrieved_context_ids": ids if ids and all(ids) else None,
    }
    row = {name: value for name, value in row.items() if value is not None}
    extra = _extra_parts(case, row)
    return {**row, EXTRA_PARTS: extra} if extra else row


def write_promptfoo(cases: Sequence[EvalCase], answers: Answers) -> ToolFiles:
    """Write tests.json, for `tests: file://tests.json`: the question as a variable, gold and assertions as checks."""
    rows: list[Json] = []
    left_out: dict[str, list[str]] = {}
    for case in cases:
        asserted = checks_of_assertions(case, FEWEST)
        rows.append(_test(case, asserted.checks))
        for what in dict.fromkeys(asserted.left_out):
            left_out.setdefault(what, []).append(case.id)
    notes = list(unplaced("promptfoo", "answers of a system", list(answers))) if answers else []
    for what, ids in left_out.items():
        notes += unplaced("promptfoo", f"the assertion {what}", ids)
    return ToolFiles({"tests.json": [json.dumps(rows, ensure_ascii=False, indent=1)]}, tuple(notes))


def _test(case: EvalCase, asserted: Sequence[dict[str, Json]]) -> dict[str, Json]:
    variables: dict[str, Json] = {"question": case.question}
    if case.contexts:  # one text: promptfoo makes a test of each member of a list
        variables["context"] = "\n\n".join(case.contexts)
    checks: list[Json] = [{"type": "factuality", "value": text} for text in case.gold.answers or ()]
    if len(checks) > 1:
        # Several gold answers: one of them is enough, where promptfoo asks for all checks.
        checks = [{"type": "assert-set", "threshold": FEWEST, "assert": checks}]
    facts: list[dict[str, Json]] = [{"type": "icontains", "value": fact} for fact in case.gold.key_facts or ()]
    checks += [*without_doubles(facts, asserted), *asserted]
    test: dict[str, Json] = {"description": case.id, "vars": variables, "metadata": {EXTRA_PARTS: {}}}
    if checks:
        test["assert"] = checks
    test["metadata"] = {EXTRA_PARTS: {"id": case.id, **_extra_parts(case, test)}}
    return test


def write_squad(cases: Sequence[EvalCase], answers: Answers) -> ToolFiles:
    """Write squad.json (v2.0) and, given answers, predictions.json for the official script."""
    articles: dict[str, dict[str, list[Json]]] = {}
    outside = []
    for case in cases:
        title = str(case.metadata.get("title", ""))
        context = "\n\n".join(case.contexts or ())
        entry = _entry(case, title, context)
        articles.setdefault(title, {}).setdefault(context, []).append(entry)
        if any(answer["answer_start"] < 0 for answer in entry["answers"]):
            outside.append(case.id)
    data = []
    for title, entries_by_context in articles.items():
        paragraphs = [{"context": context, "qas": entries} for context, entries in entries_by_context.items()]
        data.append({"title": title, "paragraphs": paragraphs})
    files = {"squad.json": [json.dumps({"version": "v2.0", "data": data}, ensure_ascii=False)]}
    if answers:
        texts = {case.id: answers[case.id].text or "" for case in cases if case.id in answers}
        files["predictions.json"] = [json.dumps(texts, ensure_ascii=False)]
    notes = []
    if outside:
        many = counted(len(outside), "case")
        notes.append(f"{many} with an answer that is not in the context: answer_start is -1 ({outside[0]} …)")
    return ToolFiles(files, tuple(notes))


def _entry(case: EvalCase, title: str, context: str) -> dict[str, Json]:
    texts = (case.gold.answers or ()) if case.answerable else ()
    entry: dict[str, Json] = {
        "id": case.id,
        "question": case.question,
        "answers": [{"text": text, "answer_start": context.find(text)} for text in texts],
        "is_impossible": not case.answerable,
    }
    extra = _extra_parts(case, squad_row(entry, title, context))
    return {**entry, EXTRA_PARTS: extra} if extra else entry


COLUMNS = (
    "id",
    "question",
    "reference",
    "answerable",
    *DESCRIPTIVE_NAMES,
    "tags",
    "vaults",
    "folders",
    "requires_kg",
    "rewrite",
    "conversational",
    "expected_outcome",
    "history",
    "contexts",
    "metadata",
    "gold",
)


def write_csv(cases: Sequence[EvalCase], answers: Answers, show: Callable[[str], str] = str) -> ToolFiles:
    """Write cases.csv and, given answers, cases.answers.csv, with only the columns that some case fills.

    show  converts each text for display; by default unchanged, so that the file reads back equal
    """
    rows = [_csv_row(case) for case in cases]
    filled = {"id", "question"}.union(*rows)
    columns = [name for name in COLUMNS if name in filled]
    written: set[str] = set()
    shown_rows = ([show(row.get(name, "")) for name in columns] for row in rows)
    files = {"cases.csv": [_csv_line(columns), *map(_csv_line, shown_rows)]}
    if answers:
        written = {case_id for case_id, answer in answers.items() if (answer.text or "").strip() or answer.abstained}
        header = _csv_line(["id", "answer", "abstained", "retrieved_chunks"])
        in_order = [case.id for case in cases if case.id in written]
        lines = [_csv_line([case_id, *_answer_cells(answers[case_id])]) for case_id in in_order]
        files["cases.answers.csv"] = [header, *lines]
    blank = [case.id for case in cases if answers and case.id in answers and case.id not in written]
    return ToolFiles(files, tuple(unplaced("CSV", "blank answers", blank)))


def _csv_row(case: EvalCase) -> dict[str, str]:
    mapping = case_content(case)
    gold = mapping.get("gold", {})
    if isinstance(gold.get("answer"), str):
        mapping["reference"] = gold.pop("answer")
    if not gold:
        mapping.pop("gold", None)
    return {name: _csv_cell(name, value) for name, value in mapping.items()}


def _csv_cell(name: str, value: Json) -> str:
    return value if CELLS[name] == "text" else json.dumps(value, ensure_ascii=False)


_CHUNK_FIELDS = ("chunk_id", "doc_id", "rel_path", "heading_path", "rank", "score_final", "text")


def _answer_cells(answer: Answer) -> list[str]:
    abstained = "" if answer.abstained is None else str(answer.abstained).lower()
    chunks = ""
    if answer.chunks is not None:
        chunks = json.dumps([_written_chunk(chunk) for chunk in answer.chunks], ensure_ascii=False)
    return [answer.text or "", abstained, chunks]


def _written_chunk(chunk: Chunk) -> dict[str, Json]:
    values = {name: getattr(chunk, name) for name in _CHUNK_FIELDS}
    return {name: value for name, value in values.items() if value is not None}


def _csv_line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)  # the csv module quotes cells with line ends
    return text.getvalue().removesuffix("\r\n")
