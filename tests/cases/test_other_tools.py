"""Test sets of other tools: what their names are here is said, and `rageval cases convert` reads their files."""

from __future__ import annotations

import json
import math
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from project import Project, lines_with

from pytest_rageval.cases.exchange.formats import read_other
from pytest_rageval.cases.loading import load_file
from pytest_rageval.cli.cases import cases
from pytest_rageval.errors import CaseError
from pytest_rageval.model import Anchor, EvalCase

QUESTION = "it is 'question' here; `rageval cases convert` reads such files"
ANSWER = "it is 'gold.answer' here; `rageval cases convert` reads such files"
CONTEXTS = "it is 'contexts' here; `rageval cases convert` reads such files"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        *((name, QUESTION) for name in ("input", "user_input", "prompt")),
        *((name, ANSWER) for name in ("ground_truth", "expected_output", "expected", "Ground_Truth")),
        *((name, CONTEXTS) for name in ("reference_contexts", "context")),
        *((name, "apart from the cases") for name in ("retrieval_context", "actual_output", "response")),
    ],
)
def test_a_key_of_another_tool_is_said_to_be_what_it_is_here(project: Project, name: str, remedy: str):
    project.cases([{"id": "q1", "question": "Why?", name: "Because."}])
    result = project.run()
    said = lines_with(result, f"{name} is not a known key")
    assert len(said) == 1
    assert remedy in said[0]
    assert not lines_with(result, "metadata")


def test_a_question_under_another_name_is_not_missing_too(project: Project):
    project.cases([{"id": "q1", "user_input": "Why?", "reference": "Because."}])
    result = project.run()
    assert lines_with(result, QUESTION)
    assert not lines_with(result, "question is missing")


def test_the_columns_of_another_tool_are_named_alike(project: Project):
    project.write("evalcases/a.csv", "user_input,answer,ground_truth\nWhy?,Because.,Because.\n")
    result = project.run()
    assert lines_with(result, f"'user_input' is not a known column; {QUESTION}")
    for name in ("answer", "ground_truth"):
        assert lines_with(result, f"'{name}' is not a known column; it is 'reference' here")
    assert not lines_with(result, "has no column")


RAGAS_CSV = """\
user_input,reference_contexts,reference,synthesizer_name,response,retrieved_contexts
When does water boil?,"['At 100 degrees.', ""It's hot.""]",At 100.,single_hop,100.,"[""It boils at 100.""]"
Who won?,,Nobody.,,,
"""
OLD_RAGAS = {
    "question": {"0": "When?", "1": "Who?"},
    "answer": {"0": "At 3.", "1": "Me."},
    "contexts": {"0": ["It is 3."], "1": ["You."]},
    "ground_truth": {"0": "3", "1": "You."},
}
DEEPEVAL = [
    {"input": "When?", "expected_output": "At 3.", "context": ["It is 3."], "actual_output": "3", "comments": None,
     "retrieval_context": ["It is 3."], "source_file": "clock.md"},
]  # fmt: skip
PROMPTFOO = {
    "tests": [
        {"vars": {"q": "When?"}, "assert": [{"type": "icontains", "value": "3"}, {"type": "llm-rubric", "value": "x"}]},
        {"vars": {"prompt": "Who?", "domain": "sport"}, "assert": [{"type": "equals", "value": "You."}]},
    ]
}
PROMPTFOO_CSV = "question,__expected\nWhen?,icontains: 3\nWho?,You.\n"


def convert(folder: Path, name: str, content: object) -> Result:
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    arguments = ["convert", str(file), "-o", str(folder / "cases.jsonl"), "--answers", str(folder / "answers.jsonl")]
    return CliRunner().invoke(cases, arguments, catch_exceptions=False)


def converted(folder: Path, name: str, content: object) -> list[EvalCase]:
    assert convert(folder, name, content).exit_code == 0
    file = load_file(folder / "cases.jsonl", folder)
    assert not file.problems
    return list(file.cases)


def given(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "answers.jsonl").read_text(encoding="utf-8").splitlines()]


def test_ragas_as_csv(tmp_path: Path):
    boil, won = converted(tmp_path, "ragas.csv", RAGAS_CSV)
    assert (boil.question, boil.gold.answers) == ("When does water boil?", ("At 100.",))
    assert boil.contexts == ("At 100 degrees.", "It's hot.")
    assert boil.metadata == {"synthesizer_name": "single_hop"}
    assert won.contexts is None
    assert given(tmp_path) == [
        {"id": boil.id, "answer": "100.", "retrieved_chunks": [{"text": "It boils at 100.", "rank": 1}]}
    ]


def test_ragas_as_it_was_in_columns(tmp_path: Path):
    when, who = converted(tmp_path, "ragas.json", OLD_RAGAS)
    assert (when.gold.answers, who.gold.answers) == (("3",), ("You.",))
    assert when.contexts is None
    assert [answer["answer"] for answer in given(tmp_path)] == ["At 3.", "Me."]


@pytest.mark.parametrize("content", [DEEPEVAL, {"goldens": DEEPEVAL}])
def test_deepeval(tmp_path: Path, content: object):
    (when,) = converted(tmp_path, "goldens.json", content)
    assert (when.question, when.gold.answers, when.contexts) == ("When?", ("At 3.",), ("It is 3.",))
    assert when.gold.supports == (Anchor("clock.md"),)
    assert given(tmp_path)[0]["answer"] == "3"


def test_deepeval_joins_texts_by_a_bar_in_csv(tmp_path: Path):
    """As `EvaluationDataset.save_as("csv", …)` writes it."""
    header = (
        "input,actual_output,expected_output,retrieval_context,context,name,comments,source_file,additional_metadata"
    )
    (when,) = converted(tmp_path, "goldens.csv", f"{header}\nWhen?,3,At 3.,It is 3.|Or 4.,One.|Two.,,,clock.md,\n")
    assert when.contexts == ("One.", "Two.")
    assert given(tmp_path)[0]["retrieved_chunks"] == [{"text": "It is 3.", "rank": 1}, {"text": "Or 4.", "rank": 2}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("semicolons.csv", '\ufeff"user_input";ground_truth\nWhen?;At 3.\nWho?;Me, not you.\n'),
        ("tabs.tsv", "question\tground_truth\nWhen?\tAt 3.\nWho?\tMe, not you.\n"),
        ("lines.json", '{"input": "When?", "expected": "At 3."}\n\n{"input": "Who?", "expected": "Me, not you."}\n'),
        ("lines.ndjson", '{"input": "When?", "expected": "At 3."}\n{"input": "Who?", "expected": "Me, not you."}\n'),
    ],
)
def test_what_spreadsheets_and_data_frames_write_is_read(tmp_path: Path, name: str, content: str):
    when, who = converted(tmp_path, name, content)
    assert (when.question, when.gold.answers, who.gold.answers) == ("When?", ("At 3.",), ("Me, not you.",))


def test_a_conversation_of_ragas_has_each_of_its_questions_asked(tmp_path: Path):
    said = [("human", "Hi."), ("ai", "Hello."), ("human", "When?"), ("tool", "clock"), ("ai", "At 3.")]
    turns = [{"content": content, "type": role} for role, content in said]
    hi, when = converted(tmp_path, "ragas.jsonl", json.dumps({"user_input": turns, "reference": "At 3."}))
    assert (hi.question, when.question, when.gold.answers) == ("Hi.", "When?", ("At 3.",))
    assert [turn.reference for turn in when.earlier] == [None]  # a greeting is no right answer
    assert when.expected_outcome == "At 3."
    assert given(tmp_path) == [{"id": hi.id, "answer": "Hello."}, {"id": when.id, "answer": "At 3."}]


def test_squad_as_rows_of_a_hub_of_data_sets(tmp_path: Path):
    rows = [
        {"id": "a", "title": "T", "context": "It is 3.", "question": "When?",
         "answers": {"text": ["3", "3", "It is 3"], "answer_start": [6, 6, 0]}},
        {"id": "b", "context": "It is 3.", "question": "Who?", "answers": {"text": [], "answer_start": []}},
        {"id": "c", "question": "Where?", "answers": ["Here", "there"]},
    ]  # fmt: skip
    when, who, where = converted(tmp_path, "squad.jsonl", "\n".join(map(json.dumps, rows)))
    assert (when.gold.answers, when.contexts, when.metadata) == (("3", "It is 3"), ("It is 3.",), {"title": "T"})
    assert (who.answerable, who.gold.answers) == (False, None)
    assert where.gold.answers == ("Here", "there")


def test_promptfoo(tmp_path: Path):
    when, who = converted(tmp_path, "tests.json", PROMPTFOO)
    assert (when.question, when.gold.key_facts, when.gold.answers) == ("When?", ("3",), None)
    assert [assertion.type for assertion in when.assertions] == ["icontains", "llm-rubric"]
    assert when.metadata == {}
    assert (who.question, who.gold.answers, who.domain) == ("Who?", ("You.",), "sport")


def test_promptfoo_as_csv(tmp_path: Path):
    when, who = converted(tmp_path, "tests.csv", PROMPTFOO_CSV)
    assert (when.gold.key_facts, who.gold.answers) == (("3",), ("You.",))


def test_what_was_converted_runs_with_its_answers(project: Project):
    convert(project.path, "ragas.json", OLD_RAGAS)
    project.cases([], "evalcases/a.jsonl")
    (project.path / "cases.jsonl").replace(project.path / "evalcases/a.jsonl")
    project.run("--rageval-target", "answers:answers.jsonl")
    assert set(project.outcomes().values()) <= {"passed", "failed"}
    assert len(project.outcomes()) == 2


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", [{"input": ["Why?"]}, 3], "a.json: row 1: input is a list, expected a string"),
        ("a.json", [{"input": "Why?"}, 3], "a.json: row 2: is 3 (a number), expected an object"),
        ("a.json", "{", "a.json:1:2: not valid JSON"),
        ("a.json", "[]", "a.json: holds no case"),
        ("a.jsonl", '{"expected": "x"}', "a.jsonl:1:1: question is missing"),
        ("a.json", '{"input": "When?"}\n\n{"expected": "Me."}\n', "a.json:3:1: question is missing"),
        ("a.jsonl", '{"user_input": [{"content": "Hi.", "type": "ai"}]}', "user_input is a list, expected a string"),
        ("a.parquet", "nothing of the kind", "a.parquet: not valid Parquet: "),
        ("a.csv", "input\na,b\n", "a.csv:2:1: the row has more cells than the header"),
        ("a.yaml", "x: [", "a.yaml:1:5: not valid YAML: "),
        ("a.csv", "Thema,Notiz\nA,b\n", "question; columns: Thema, Notiz; say which with --map question=COLUMN"),
        ("a.json", [{"id": "q", "input": "a"}, {"id": "q", "input": "b"}], "row 2: id already used"),
    ],
)
def test_what_cannot_be_converted_is_said_and_nothing_is_written(
    project: Project, name: str, content: object, problem: str
):
    pytest.importorskip({".yaml": "yaml", ".parquet": "pyarrow"}.get(Path(name).suffix, "json"))
    project.write(name, content if isinstance(content, str) else json.dumps(content))
    result = project.rageval("cases", "convert", name, "-o", "evalcases/new.jsonl")
    assert result.ret == 2
    assert lines_with(result, problem)
    assert not (project.path / "evalcases/new.jsonl").exists()


def test_a_file_that_is_there_is_not_replaced_unless_asked(project: Project):
    project.write("ragas.csv", RAGAS_CSV)
    project.write("mine.jsonl", "precious\n")
    for option in ("-o", "--answers"):
        result = project.rageval("cases", "convert", "ragas.csv", option, "mine.jsonl")
        assert result.ret == 2
        assert "mine.jsonl: there already; choose another name, or replace it with --force" in result.stderr.str()
        assert (project.path / "mine.jsonl").read_text() == "precious\n"
    assert project.rageval("cases", "convert", "ragas.csv", "-o", "mine.jsonl", "--force").ret == 0
    assert "precious" not in (project.path / "mine.jsonl").read_text()


def test_a_row_that_repeats_another_is_left_out_and_counted(project: Project):
    project.write("a.csv", "input,expected_output\nWhy?,So.\nWhy?,So.\n")
    result = project.rageval("cases", "convert", "a.csv")
    assert result.ret == 0
    assert len(result.outlines) == 1
    assert lines_with(result, "1 row left out that repeats an earlier one")


def test_a_parquet_file_is_read_row_by_row(project: Project):
    arrow = pytest.importorskip("pyarrow", reason="needs the extra 'parquet'")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [
        {"user_input": "When does water boil?", "reference": "At 100 degrees.", "reference_contexts": ["It boils."],
         "asked": datetime(2026, 1, 2, tzinfo=UTC), "weight": math.nan},
        {"user_input": "Why?", "reference": None, "reference_contexts": None, "asked": None, "weight": None},
    ]  # fmt: skip
    parquet.write_table(arrow.Table.from_pylist(rows), project.path / "a.parquet")
    result = project.rageval("cases", "convert", "a.parquet", "-o", "evalcases/a.jsonl")
    assert result.ret == 0
    first, second = load_file(project.path / "evalcases/a.jsonl", project.path).cases
    assert (first.question, first.gold.answers, first.contexts) == (
        "When does water boil?", ("At 100 degrees.",), ("It boils.",)
    )  # fmt: skip
    assert first.metadata == {"asked": "2026-01-02 00:00:00+00:00"}
    assert (second.question, second.gold.answers) == ("Why?", None)


def test_parquet_without_its_library_says_how_to_get_it(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    project.write("a.parquet", "")
    result = project.rageval("cases", "convert", "a.parquet")
    assert result.ret == 2
    assert lines_with(result, "is Parquet, and pyarrow is not installed; pip install 'pytest-rageval[parquet]'")


def test_a_file_of_rows_that_are_no_cases_is_not_read_to_its_end(tmp_path: Path):
    path = tmp_path / "foreign.json"
    path.write_text(json.dumps({"data": [{"a": 1}] * 5_000}), encoding="utf-8")
    with pytest.raises(CaseError) as caught:
        read_other(path, path.name)
    assert "foreign.json: what stands behind row 1000 was not read" in caught.value.problems
