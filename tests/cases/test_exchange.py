"""Test sets of BEIR, TREC, SQuAD, Ragas, DeepEval, promptfoo and CSV: read as they look, written, and read back."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from project import Project, lines_with

from pytest_rageval.cases.conversations import alone
from pytest_rageval.cases.exchange.formats import WRITERS, ReadOptions, read_other, read_other_answers
from pytest_rageval.cases.loading import load_file
from pytest_rageval.errors import CaseError
from pytest_rageval.model import NOWHERE, Anchor, Answer, Chunk, Edge, EvalCase, Gold, Turn

ROOT = Path(__file__).parents[2]
PLAIN = EvalCase("plain", "What is nothing?")
RICH = EvalCase(
    "비 1/2 %20",
    "  Warum\nregnet es?",
    category="multi_hop",
    difficulty="hard",
    domain="weather",
    tags=("a", "b"),
    vaults=("v",),
    folders=("f",),
    requires_kg=True,
    gold=Gold(
        answers=("Wolken", "wegen der Wolken"), key_facts=("cloud", "100 %"),
        supports=(Anchor("a.md", "# A > ## B", ("snip",), "2024"), Anchor("b.md")), support_groups=((0, 1),),
        irrelevant_supports=(Anchor("c.md"),), chunk_ids=("c 1", "c2"), irrelevant_ids=("c9",), ids_are_prefixes=True,
        relevance={"c 1": 2.0, "c2": 0.5}, concepts=(), constraints=("x",), kg_entities=("e",),
        kg_edges=(Edge("s", "p", "o"),), recency_conflict_rule="cite_newer",
    ),
    history=(Turn("user", "hi"),),
    contexts=("Eins, zwei | drei; vier", "fünf"),
    metadata={"own": {"deep": [1, None]}, "title": 7},
)  # fmt: skip
UNANSWERABLE = EvalCase("none", "Who won?", answerable=False, category="negative",
                        gold=Gold(answers=("The notes do not say.",), chunk_ids=(), ids_are_prefixes=True))  # fmt: skip
CASES = (PLAIN, RICH, UNANSWERABLE)
ANSWERS = {RICH.id: Answer("Clouds.", chunks=(Chunk("c 1", text="Rain falls."), Chunk("c2", text="It is wet.")))}


def shipped_cases() -> list[EvalCase]:
    files = sorted(path for path in (ROOT / "evalcases").iterdir() if ".references." not in path.name)
    # Other tools' files hold single questions: a turn goes into them with its history.
    return [alone(replace(case, id=case.key)) for path in files for case in load_file(path, ROOT).cases]


def written(folder: Path, form: str, cases: Iterable[EvalCase], answers: Any = None) -> Path:
    """The files of a format, in the folder; the path that is read back."""
    files = WRITERS[form]([*cases], answers or {}).files
    for name, lines in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="")
    return folder if form == "beir" else folder / next(iter(files))


def read_back(path: Path, **parts: Any) -> dict[str, EvalCase]:
    """The cases of a test set as a case file gives them, by id."""
    records = read_other(path, "x", options=ReadOptions(**parts)).cases
    file = path.parent / "back.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    loaded = load_file(file, path.parent)
    assert loaded.problems == ()
    return {case.id: replace(case, source=NOWHERE) for case in loaded.cases}


@pytest.mark.parametrize("form", sorted(WRITERS))
@pytest.mark.parametrize("of", ["made-up", "shipped"])
def test_a_case_comes_back_as_it_went(tmp_path: Path, form: str, of: str):
    """TREC's files hold questions and grades alone: these come back, and go out again as the same files."""
    cases = CASES if of == "made-up" else shipped_cases()
    parts = {"qrels": tmp_path / "qrels.txt"} if form == "trec" else {}
    back = read_back(written(tmp_path, form, cases), **parts)
    if form == "trec":
        assert WRITERS[form]([*back.values()], {}).files == WRITERS[form](cases, {}).files
    else:
        assert back == {case.id: replace(case, source=NOWHERE) for case in cases}


@pytest.mark.parametrize("of", ["made-up", "shipped"])
def test_a_csv_file_of_ours_holds_everything(tmp_path: Path, of: str):
    cases = CASES if of == "made-up" else shipped_cases()
    loaded = load_file(written(tmp_path, "csv", cases), tmp_path)
    assert loaded.problems == ()
    assert [replace(case, source=NOWHERE) for case in loaded.cases] == [replace(c, source=NOWHERE) for c in cases]


def test_trec_holds_questions_and_grades_and_says_what_it_does_not(tmp_path: Path):
    path = written(tmp_path, "trec", CASES, ANSWERS)
    back = read_back(path, qrels=tmp_path / "qrels.txt", run=tmp_path / "run.txt")
    assert {case_id: case.question for case_id, case in back.items()} == {
        "plain": "What is nothing?", RICH.id: "Warum regnet es?", "none": "Who won?"
    }  # fmt: skip
    assert back[RICH.id].gold.relevance == {"c 1": 2.0, "c2": 1.0, "c9": 0.0}
    assert "TREC has no place for gold places: left out of " + RICH.id in WRITERS["trec"](CASES, {}).notes


def test_a_run_of_trec_is_sorted_by_score_and_keeps_odd_ids(tmp_path: Path):
    (tmp_path / "t.tsv").write_text("q1\tWhy?\n")
    (tmp_path / "run").write_text("q1 Q0 d%2Fx 1 0.5 me\nq1 Q0 d2 2 0.9 me\n")
    answers = read_other(tmp_path / "t.tsv", "t", options=ReadOptions(run=tmp_path / "run")).answers
    chunks = answers[0]["retrieved_chunks"]
    assert [(chunk["chunk_id"], chunk["rank"]) for chunk in chunks] == [("d2", 1), ("d%2Fx", 2)]


TOPICS = """<top>
<num> Number: 301
<title> International Organized Crime
<desc> Description:
Identify organizations that participate in international criminal activity.
</top>
<top>
<num>302</num><title>Poliomyelitis</title>
</top>
"""


def test_topics_in_blocks_are_read(tmp_path: Path):
    (tmp_path / "topics").write_text(TOPICS)
    (tmp_path / "qrels").write_text("301 0 FBIS3-10082 1\n301 0 FBIS3-10169 0\n302 0 FR940202 1\n")
    back = read_back(tmp_path / "topics", qrels=tmp_path / "qrels")
    assert back["301"].question == "International Organized Crime"
    assert back["301"].gold.relevance == {"FBIS3-10082": 1.0, "FBIS3-10169": 0.0}
    assert (back["302"].question, back["302"].gold.chunk_ids) == ("Poliomyelitis", ("FR940202",))


def beir_folder(folder: Path) -> Path:
    (folder / "qrels").mkdir()
    queries = [
        {"_id": "PLAIN-2", "text": "Do statins cause breast cancer?", "metadata": {"url": "http://x.test/"}},
        {"_id": "PLAIN-12", "text": "Exploiting autophagy", "metadata": {}},
    ]
    (folder / "queries.jsonl").write_text("".join(json.dumps(query) + "\n" for query in queries))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nPLAIN-2\tMED-2427\t2\nPLAIN-2\tMED-10\t1\n")
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nPLAIN-12\tMED-10\t1\n")
    return folder


def test_a_folder_of_beir_gives_the_queries_that_the_split_judges(tmp_path: Path):
    back = read_back(beir_folder(tmp_path))
    assert [*back] == ["PLAIN-2"]
    assert back["PLAIN-2"].gold.relevance == {"MED-2427": 2.0, "MED-10": 1.0}
    assert back["PLAIN-2"].requires_kg is False
    assert back["PLAIN-2"].metadata == {"url": "http://x.test/"}
    dev = read_other(tmp_path, "x", options=ReadOptions(split="dev")).cases
    assert dev == [{"id": "PLAIN-12", "question": "Exploiting autophagy", "gold": {"chunk_ids": ["MED-10"]}}]


SQUAD = {
    "version": "v2.0",
    "data": [{"title": "Normans", "paragraphs": [{
        "context": "The Normans gave their name to Normandy, a region in France.",
        "qas": [
            {"id": "56ddde6b", "question": "In what country is Normandy?", "is_impossible": False, "answers": [
                {"text": "France", "answer_start": 53}, {"text": "France", "answer_start": 53},
                {"text": "in France"}]},
            {"id": "5ad39d53", "question": "What is France a region of?", "is_impossible": True, "answers": [],
             "plausible_answers": [{"text": "Normandy", "answer_start": 31}]},
        ]}]}],
}  # fmt: skip


def test_squad_gives_contexts_answers_and_what_cannot_be_answered(tmp_path: Path):
    (tmp_path / "dev-v2.0.json").write_text(json.dumps(SQUAD))
    back = read_back(tmp_path / "dev-v2.0.json")
    assert back["56ddde6b"].gold.answers == ("France", "in France")
    assert back["56ddde6b"].contexts == ("The Normans gave their name to Normandy, a region in France.",)
    assert back["56ddde6b"].metadata == {"title": "Normans"}
    assert back["5ad39d53"].answerable is False
    assert back["5ad39d53"].metadata["plausible_answers"][0]["text"] == "Normandy"


def test_squad_spans_point_into_the_context_and_predictions_are_by_id(tmp_path: Path):
    case = EvalCase("q", "Where?", gold=Gold(answers=("France", "Gaul")), contexts=("Normandy is in France.",))
    files = WRITERS["squad"]([case], {"q": Answer("In France.")}).files
    entry = json.loads(files["squad.json"][0])["data"][0]["paragraphs"][0]["qas"][0]
    assert [answer["answer_start"] for answer in entry["answers"]] == [15, -1]
    assert json.loads(files["predictions.json"][0]) == {"q": "In France."}


@pytest.mark.parametrize("form", ["ragas", "deepeval", "csv"])
def test_what_a_system_gave_comes_back_as_answers(tmp_path: Path, form: str):
    path = written(tmp_path, form, CASES, ANSWERS)
    if form == "csv":
        (answer,) = read_other_answers(tmp_path / "cases.answers.csv", "x", {}).answers
    else:
        (answer,) = read_other(path, "x").answers
    assert (answer["id"], answer["answer"]) == (RICH.id, "Clouds.")
    assert [chunk["text"] for chunk in answer["retrieved_chunks"]] == ["Rain falls.", "It is wet."]
    if form != "deepeval":
        assert [chunk["chunk_id"] for chunk in answer["retrieved_chunks"]] == ["c 1", "c2"]


def test_ragas_rows_have_the_names_of_its_samples(tmp_path: Path):
    (row,) = (json.loads(line) for line in WRITERS["ragas"]([RICH], ANSWERS).files["ragas.jsonl"])
    assert row["user_input"] == RICH.question
    assert row["reference"] == "Wolken"
    assert row["reference_contexts"] == list(RICH.contexts or ())
    assert row["reference_context_ids"] == ["c 1", "c2"]
    assert (row["response"], row["retrieved_contexts"]) == ("Clouds.", ["Rain falls.", "It is wet."])


def test_one_of_several_right_answers_is_enough_for_promptfoo():
    test = json.loads("".join(WRITERS["promptfoo"]([RICH], {}).files["tests.json"]))[0]
    answers, *facts = test["assert"]
    assert [check["value"] for check in answers["assert"]] == ["Wolken", "wegen der Wolken"]
    assert (answers["type"], answers["threshold"]) == ("assert-set", 1e-6)
    assert facts == [{"type": "icontains", "value": "cloud"}, {"type": "icontains", "value": "100 %"}]
    assert test["vars"]["context"] == "Eins, zwei | drei; vier\n\nfünf"


@pytest.mark.parametrize(
    ("name", "content", "parts", "problem"),
    [
        ("t.tsv", "q1 Why?\n", {}, "x:1:1: is no topic; expected 'id<TAB>question'"),
        ("t.tsv", "q1\tA?\nq1\tB?\n", {}, "x:2:1: topic 'q1' stands twice"),
        ("t.tsv", "q1\tA?\n", {"qrels": "q1 d 1 x\n"}, "expected 'query 0 document grade'"),
        ("t.tsv", "q1\tA?\n", {"qrels": "q1 0 d 1\nq1 0 d 0\n"}, ":2:1: document 'd' is judged twice for query 'q1'"),
        ("t.tsv", "q1\tA?\n", {"qrels": "q2 0 d 1\n"}, "x: lacks 1 topic that the qrels names: 'q2' first"),
        ("t.tsv", "q1\tA?\n", {"run": "q1 d 1\n"}, "expected 'query Q0 document rank score tag'"),
        ("s.json", '{"data": [{"paragraphs": [{"qas": 3}]}]}', {}, "x: data[0].paragraphs[0].qas is 3 (a number), exp"),
        ("s.json", '{"data": [{"paragraphs": [{"context": "", "qas": [{}]}]}]}', {}, "qas[0]: question is missing"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_gets_one_line(tmp_path: Path, name: str, content: str, parts: Any, problem: str):
    (tmp_path / name).write_text(content)
    for part, text in parts.items():
        (tmp_path / part).write_text(text)
    with pytest.raises(CaseError) as error:
        read_other(tmp_path / name, "x", options=ReadOptions(**{part: tmp_path / part for part in parts}))
    assert len(error.value.problems) == 1
    assert problem in error.value.problems[0]


def test_a_folder_that_is_not_of_beir_is_said_to_be_none(tmp_path: Path):
    with pytest.raises(CaseError, match=r"x: qrels/test.tsv does not exist \(splits there: none\)"):
        read_other(tmp_path, "x")


def test_cases_and_answers_go_out_and_come_back(project: Project):
    project.cases([{"id": "q1", "question": "Why?", "reference": "Because.", "category": "factual"}])
    project.write("a.answers.jsonl", '{"id": "q1", "answer": "So.", "retrieved_chunks": [{"text": "It is so."}]}\n')
    out = project.rageval("cases", "export", "--to", "ragas", "-o", "out", "--answers", "a.answers.jsonl")
    assert (out.ret, out.outlines) == (0, ["out/ragas.jsonl", "1 case, 1 answer"])
    back = project.rageval("cases", "convert", "out/ragas.jsonl", "-o", "back.jsonl", "--answers", "back.answers.jsonl")
    assert back.ret == 0
    loaded = [load_file(project.path / name, project.path).cases[0] for name in ("evalcases/a.jsonl", "back.jsonl")]
    assert replace(loaded[0], source=NOWHERE) == replace(loaded[1], source=NOWHERE)
    assert json.loads((project.path / "back.answers.jsonl").read_text())["answer"] == "So."


def test_files_that_are_there_are_not_replaced_unless_asked(project: Project):
    project.cases([{"id": "q1", "question": "Why?"}])
    for arguments, status in ((), 0), ((), 2), (("--force",), 0):
        assert project.rageval("cases", "export", "--to", "csv", *arguments).ret == status
    with (project.path / "cases.csv").open(newline="") as file:
        assert [row["question"] for row in csv.DictReader(file)] == ["Why?"]


def test_a_wrong_case_file_is_not_exported(project: Project):
    project.write("evalcases/a.jsonl", '{"id": "q1"}\n')
    result = project.rageval("cases", "export", "--to", "csv")
    assert result.ret == 2
    assert lines_with(result, "evalcases/a.jsonl:1:1: case 'q1': question is missing")
    assert not (project.path / "cases.csv").exists()


def test_an_id_of_two_files_is_exported_with_its_file(project: Project):
    for name in ("a", "b"):
        project.cases([{"id": "q1", "question": f"{name}?"}], f"evalcases/{name}.jsonl")
    project.rageval("cases", "export", "--to", "trec")
    assert (project.path / "topics.tsv").read_text() == "evalcases/a.jsonl::q1\ta?\nevalcases/b.jsonl::q1\tb?\n"
