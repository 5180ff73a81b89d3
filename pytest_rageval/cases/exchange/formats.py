"""Formats of other tools: detection, reading, writing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.cases.exchange.exchange import Answers, OtherTestSet, ToolFiles
from pytest_rageval.cases.exchange.ragtruth import RESPONSES, SOURCES, is_ragtruth, read_ragtruth
from pytest_rageval.cases.exchange.retrieval_sets import read_beir, read_trec, write_beir, write_trec
from pytest_rageval.cases.exchange.row_files import LONGEST, RowReport, is_table
from pytest_rageval.cases.exchange.tool_cases import (
    write_csv,
    write_deepeval,
    write_promptfoo,
    write_ragas,
    write_squad,
)
from pytest_rageval.cases.exchange.tool_rows import is_squad, other_test_set, read_tool_rows, squad_rows
from pytest_rageval.errors import CaseError
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import EvalCase, Json

WRITERS: Mapping[str, Callable[[Sequence[EvalCase], Answers], ToolFiles]] = {
    "beir": write_beir,
    "csv": write_csv,
    "deepeval": write_deepeval,
    "promptfoo": write_promptfoo,
    "ragas": write_ragas,
    "squad": write_squad,
    "trec": write_trec,
}
READERS = ("beir", "deepeval", "promptfoo", "ragas", "ragtruth", "squad", "trec")


class ReadOptions(NamedTuple):
    """The other files or the split of a test set: TREC's qrels and run, the split of BEIR and of RAGTruth."""

    qrels: Path | None = None
    run: Path | None = None
    split: str | None = None


def read_other(path: Path, name: str, form: str | None = None, options: ReadOptions | None = None) -> OtherTestSet:
    """Read another tool's test set; raise CaseError with every problem, one line each.

    `form` is one of READERS. None detects it: a folder is RAGTruth's by its two files, else BEIR's; a file with
    `paragraphs` is SQuAD's, one with qrels or a run TREC's, any other is recognised by its field names.
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
    document = _document(path)
    if is_squad(document):
        report = RowReport(name, has_lines=False)
        return other_test_set(squad_rows(document, report), report)
    if form == "squad":
        raise CaseError(f"{name} is not of SQuAD: there is no list data[].paragraphs")
    return read_tool_rows(path, name)


def _form(path: Path, options: ReadOptions) -> str | None:
    if path.is_dir():
        return "ragtruth" if is_ragtruth(path) else "beir"
    is_trec = (
        options.qrels is not None
        or options.run is not None
        or (path.suffix.lower() in (".tsv", ".topics") and not is_table(path))
    )
    return "trec" if is_trec else None


def _document(path: Path) -> Json:
    """Parse a document that may be SQuAD's; return None for others, whose reader reports the problem."""
    try:
        if path.suffix.lower() != ".json" or path.stat().st_size > 4 * LONGEST:
            return None
        return parse(path.read_bytes())
    except (OSError, StrictJsonError):
        return None
