"""Test sets as people bring them: each file is read with its gold, and what goes elsewhere is named."""

from __future__ import annotations

import json
import shutil
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from foreign_files import FOREIGN, read, read_rows
from project import Project, lines_with

from pytest_rageval.cases.exchange.formats import format_of, read_other
from pytest_rageval.cases.exchange.mapped_fields import parsed_fields
from pytest_rageval.cli.cases import cases as cases_command
from pytest_rageval.errors import CaseError
from pytest_rageval.model import Anchor

A = "A is one."


ONE = "What is A?"


@pytest.mark.parametrize(
    ("file", "question", "answers", "contexts", "places", "ids"),
    [
        ("ragas.jsonl", ONE, A, "A is one, of course.", None, None),
        ("ragas.csv", ONE, A, "A is one, of course.", None, None),
        ("deepeval.json", ONE, A, "A is one, of course.", "docs/a.md", None),
        ("promptfoo.csv", ONE, "A is one", "A is one", None, None),
        ("langsmith.jsonl", ONE, A, None, None, None),
        ("langsmith.csv", ONE, A, None, None, None),
        ("langfuse.json", ONE, A, None, None, None),
        ("phoenix.json", "A?", "one", None, None, None),
        ("llamaindex.json", ONE, None, A, None, "n1"),
        ("llamaindex_rag.json", ONE, A, A, None, None),
        ("trulens.jsonl", ONE, A, "x", None, None),
        ("openai_evals.jsonl", ONE, A, None, None, None),
        ("squad.json", "When does water boil?", "100 degrees", "Water boils at 100 degrees.", None, None),
        ("hf.jsonl", ONE, "one", "A is one", None, None),
        ("people.csv", "Was ist A?", "A ist eins.", None, "a.md", None),
        ("people2.csv", ONE, A, None, "docs/a.md", None),
        ("people3.csv", ONE, A, None, None, "d1"),
        ("people4.jsonl", ONE, A, None, "docs/a.md > Intro", None),
    ],
)
def test_each_file_is_read_with_its_gold(file, question, answers, contexts, places, ids):
    case = read(FOREIGN / file)[0]
    assert case.question == question
    assert (case.gold.answers or (None,))[0] == answers
    assert (case.contexts or (None,))[0] == contexts
    assert (str(case.gold.supports[0]) if case.gold.supports else None) == places
    assert (case.gold.chunk_ids or (None,))[0] == ids


def test_ids_of_other_tools_are_kept():
    ids = [read(FOREIGN / name)[0].id for name in ("langsmith.csv", "langfuse.json", "llamaindex.json", "hf.jsonl")]
    assert ids == ["b3f", "it1", "u1", "1"]


def test_yaml_without_its_library_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    ended = CliRunner().invoke(cases_command, ["convert", str(FOREIGN / "promptfoo.yaml")])
    assert "PyYAML is not installed; pip install 'pytest-rageval[yaml]'" in str(ended.exception)


def test_topics_and_qrels_of_trec_and_beir(tmp_path):
    topics = read(FOREIGN / "topics.tsv", qrels=FOREIGN / "qrels.txt")
    assert [(case.question, case.gold.relevance, case.gold.chunk_ids) for case in topics] == [
        ("International Organized Crime", {"FBIS3-1": 1.0, "FBIS3-2": 0.0}, ("FBIS3-1",)),
        ("Poliomyelitis", {"FT-1": 2.0}, ("FT-1",)),
    ]
    assert [case.id for case in read(FOREIGN / "topics.xml")] == ["301"]
    assert read(FOREIGN / "beir")[0].gold.relevance == {"d1": 2.0}


ROWS: dict[str, dict[str, Any]] = {
    "mlflow": {"inputs": {"question": "Q?"}, "expectations": {
        "expected_response": "A.", "expected_facts": ["one"],
        "expected_retrieved_context": [{"doc_uri": "docs/a.md", "content": "It is."}]}, "outputs": "Given."},
    "braintrust": {"id": "b", "input": {"question": "Q?"}, "expected": {"answer": "A."}, "tags": ["x"]},
    "giskard": {"id": "g", "question": "Q?", "reference_answer": "A.", "reference_context": "Document 1: It is.",
                "conversation_history": [{"role": "user", "content": "Hi."}], "metadata": {"topic": "t"}},
    "inspect": {"id": 3, "input": [{"role": "user", "content": "Q?"}], "target": ["A."], "metadata": {"x": 1}},
    "pydantic-evals": {"name": "p", "inputs": {"query": "Q?"}, "expected_output": "A.", "evaluators": ["IsInstance"]},
    "ragchecker": {"query_id": "0", "query": "Q?", "gt_answer": "A.", "response": "Given.",
                   "retrieved_context": [{"doc_id": "d1", "text": "It is."}]},
    "trulens": {"query": "Q?", "expected_response": "A.", "expected_chunks": [{"text": "It is.", "title": "T"}]},
    "openai-evals": {"item": {"question": "Q?", "ground_truth": "A."}},
    "langsmith": {"inputs": {"messages": [{"role": "user", "content": "Q?"}]},
                  "outputs": {"messages": [{"role": "assistant", "content": "A."}]}},
    "langfuse": {"input": {"messages": [{"role": "user", "content": "Q?"}]}, "expectedOutput": "A."},
    "phoenix": {"input": {"x": "Q?"}, "output": {"y": "A."}, "metadata": {}},
}  # fmt: skip


@pytest.mark.parametrize("form", ROWS)
def test_a_row_of_each_format_is_recognised_and_read(tmp_path, form):
    (case,) = read_rows(tmp_path, ROWS[form])
    assert (case.question, case.gold.answers) == ("Q?", ("A.",))
    found = format_of(ROWS[form])
    assert found is not None
    assert found.name == form


def test_parts_beyond_question_and_answer_are_read_too(tmp_path):
    (mlflow,) = read_rows(tmp_path, ROWS["mlflow"])
    assert (mlflow.gold.key_facts, mlflow.gold.supports, mlflow.contexts) == (
        ("one",),
        (Anchor("docs/a.md"),),
        ("It is.",),
    )
    (giskard,) = read_rows(tmp_path, ROWS["giskard"])
    assert giskard.history is not None
    assert (giskard.contexts, giskard.history[0].text) == (("Document 1: It is.",), "Hi.")
    answers = read_other(tmp_path / "rows.json", "x").answers
    assert answers == []
    path = tmp_path / "checker.json"
    path.write_text(json.dumps({"results": [ROWS["ragchecker"]]}))
    assert read_other(path, "x").answers == [
        {"id": "0", "answer": "Given.", "retrieved_chunks": [{"text": "It is.", "rank": 1, "chunk_id": "d1"}]}
    ]


@pytest.mark.parametrize(
    "header",
    ["Question,Answer,Source", "Frage,Musterantwort,Fundstelle", "Question,Réponse attendue,Fichier",
     "Pregunta,Respuesta esperada,Fuente", "Domanda,Risposta attesa,Fonte", "Pergunta,Resposta esperada,Fonte",
     "Vraag,Antwoord,Bron", "질문,정답,출처", "質問,模範解答,出典", "问题,标准答案,来源",
     "user query,Correct answer (short),Document name", "prompt,gold answer,source_url"],
)  # fmt: skip
def test_columns_are_guessed_in_several_languages(tmp_path, header):
    path = tmp_path / "people.csv"
    path.write_text(f"{header}\nWhat is A?,A is one.,docs/a.md\n", encoding="utf-8")
    (case,) = read(path)
    assert (case.question, case.gold.answers, case.gold.supports) == ("What is A?", (A,), (Anchor("docs/a.md"),))


@pytest.mark.parametrize(
    ("header", "cells", "supports"),
    [
        ("Frage,Quelle,Abschnitt", "Was?,a.md,# A > ## B", (Anchor("a.md", "# A > ## B"),)),
        ("Section title,Question,File", "B,What?,a.md", (Anchor("a.md", "B"),)),
        ("question,gold.headings,file", "What?,A;B,a.md;b.md", (Anchor("a.md", "A"), Anchor("b.md", "B"))),
        ("질문,문서,섹션", "무엇?,a.md,가", (Anchor("a.md", "가"),)),
    ],
)
def test_a_column_of_headings_belongs_to_that_of_files(tmp_path, header, cells, supports):
    path = tmp_path / "people.csv"
    path.write_text(f"{header}\n{cells}\n", encoding="utf-8")
    (case,) = read(path)
    assert (case.gold.supports, case.metadata) == (supports, {})


def test_headings_that_fit_no_files_are_kept_as_metadata(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("Frage,Quelle,Abschnitt\nWas?,a.md;b.md,A\nWo?,,B\n", encoding="utf-8")
    two, none = read(path)
    assert (two.gold.supports, two.metadata) == ((Anchor("a.md"), Anchor("b.md")), {"Abschnitt": "A"})
    assert (none.gold.supports, none.metadata) == (None, {"Abschnitt": "B"})


def test_a_map_takes_names_and_expressions(tmp_path):
    fields = parsed_fields(["question=Text der Anfrage", "gold.answer=extra.soll", "gold.paths=extra.wo[].datei"])
    row = {"Text der Anfrage": "Was?", "extra": {"soll": "Das.", "wo": [{"datei": "a.md"}, {"datei": "b.md"}]}}
    (case,) = read_rows(tmp_path, row, fields=fields)
    assert (case.question, case.gold.answers) == ("Was?", ("Das.",))
    assert case.gold.supports == (Anchor("a.md"), Anchor("b.md"))


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("lenght(Frage)", "there is no function lenght(); did you mean 'length'?"),
        ("Frage[].lenght(@)", "there is no function lenght(); did you mean 'length'?"),
        ("length(Frage, Frage)", "length() takes 1 arguments, not 2"),
    ],
)
def test_functions_of_a_map_are_checked_before_a_row_is_converted(tmp_path, written, problem):
    with pytest.raises(CaseError) as raised:
        read_rows(tmp_path, {"Text": "Wann?"}, fields=parsed_fields([f"question={written}"]))
    assert str(raised.value).endswith(problem)


def test_an_expression_that_does_not_fit_a_row_is_one_line(tmp_path):
    with pytest.raises(CaseError, match=r"^question = sum\(Frage\) does not fit a row: "):
        read_rows(tmp_path, {"Frage": "Wann?"}, fields=parsed_fields(["question=sum(Frage)"]))


@pytest.mark.parametrize(
    ("encoding", "question", "said"),
    [
        ("cp1252", "Wie viele Gäste fasst das Café, und was heißt „Öffnungszeit“ für sie?", "Windows-1252"),
        ("utf-16", "Wie viele Gäste?", "UTF-16"),
        ("utf-16-be", "Wie viele Gäste?", "UTF-16"),
    ],
)
@pytest.mark.parametrize("command", ["cases", "answers"])
def test_a_table_in_another_encoding_is_read_and_the_encoding_is_said(
    project: Project, command: str, encoding: str, question: str, said: str
):
    name, separator = ("fragen.tsv", "\t") if said == "UTF-16" else ("fragen.csv", ";")
    table = "\ufeff" * (encoding == "utf-16-be") + f"Frage{separator}Antwort\r\n{question}{separator}Zwölf.\r\n"
    (project.path / name).write_bytes(table.encode(encoding))
    result = project.rageval(command, "convert", name, "-o", "new.jsonl", "--map", "question=Frage",
                             "--map", "gold.answer=Antwort" if command == "cases" else "answer=Antwort")  # fmt: skip
    assert result.ret == 0
    result.stderr.fnmatch_lines([f"{name} was read as *{said}*"])
    assert json.loads((project.path / "new.jsonl").read_text("utf-8"))["question"] == question


def test_a_workbook_is_read_as_its_first_sheet_shows_it(tmp_path):
    sheet = (book := pytest.importorskip("openpyxl").Workbook()).create_sheet("Fragen", 0)
    for row in (("Frage", "Antwort"), ("Wann?", date(2026, 11, 27)), ("Wie viel?", 0.035), ("Wie oft?", 1e6)):
        sheet.append(row)
    sheet["B3"].number_format = "0.0%"
    book.save(tmp_path / "fragen.xlsx")
    golds = [case.gold.answers for case in read(tmp_path / "fragen.xlsx")]
    assert golds == [("2026-11-27",), ("3.5%",), ("1000000",)]


def test_bytes_of_no_encoding_are_reported_by_their_line(tmp_path):
    (tmp_path / "rows.csv").write_bytes(b"question,reference\nA?,\xc3\xa4\nB?,\x81 \xff\n")
    with pytest.raises(CaseError, match=r"rows.csv:3:4: byte 0x81 .* is not UTF-8"):
        read(tmp_path / "rows.csv")


def test_the_result_line_counts_and_names_what_went_to_metadata(project: Project):
    for name in ("people2.csv", "people.csv"):
        shutil.copy(FOREIGN / name, project.path / name)
    result = project.rageval("cases", "convert", "people2.csv", "-o", "new.jsonl")
    assert result.outlines == [
        "new.jsonl: 2 cases; gold answer 1, places 1, none 1; to metadata: Comment",
        "first case: question 'What is A?', gold 'A is one.'; places 'docs/a.md', answerable yes",
    ]
    assert lines_with(result, "people2.csv: read by the names of its columns: question = Question, gold.answer = Exp")
    result = project.rageval(
        "cases", "convert", "people.csv", "--map", "question=Frage", "--map", "gold.answer=Antwort"
    )
    assert not lines_with(result, "read by the names")
    assert lines_with(result, "Quelle") == []
    assert lines_with(project.rageval("cases", "convert", "people.csv", "--map", "frage=x"), "fields: question, gold.")


def test_gold_in_the_metadata_is_named_and_no_gold_is_a_warning(project: Project):
    project.write("a.jsonl", '{"question": "Q?", "metadata": {"source": "a.md"}}\n')
    result = project.rageval("cases", "convert", "a.jsonl", "--from", "ragas")
    assert result.ret == 0
    assert lines_with(result, "warning: 0 of 1 case have gold")
    assert project.rageval("cases", "convert", "a.jsonl", "--strict").ret == 1
    project.write("b.json", json.dumps([{"input": "Q?", "expected": "A.", "metadata": {"source": "the manual"}}]))
    said = lines_with(project.rageval("cases", "convert", "b.json"), "looks like gold")
    assert said == ["source looks like gold and went to metadata; --map gold.paths=metadata.source takes it instead"]


def test_sources_of_an_answer_are_its_chunks(project: Project):
    project.write("bot.csv", "Frage;Antwort des Bots;Quelle\nWas?;Eins.;a.md#B\nWo?;Da.;a.md\n")
    assert project.rageval("answers", "convert", "bot.csv", "-o", "out.jsonl").ret == 0
    first, second = map(json.loads, (project.path / "out.jsonl").read_text(encoding="utf-8").splitlines())
    assert first["retrieved_chunks"] == [{"rank": 1, "rel_path": "a.md", "heading_path": "B"}]
    assert second["retrieved_chunks"] == [{"rank": 1, "rel_path": "a.md"}]


def test_answers_of_any_names_are_converted_and_scored(project: Project):
    project.cases([{"id": "a", "question": "Was ist A?", "reference": "Eins."}])
    project.write("bot.csv", "Frage;Antwort des Bots;Note\nWas ist A?;Eins.;gut\n")
    result = project.rageval("answers", "convert", "bot.csv")
    assert result.outlines == [
        "bot.answers.jsonl: 1 answer; to meta: Note; score with --rageval-target answers:bot.answers.jsonl"
    ]
    assert lines_with(result, "read by the names of its columns: question = Frage, answer = Antwort des Bots")
    ended = project.rageval(
        "run", "--target", "answers:bot.answers.jsonl", "--judge", "none", "--metrics", "exact_match"
    )
    assert lines_with(ended, "1 of 1 case passes")


def test_answers_without_a_known_name_are_asked_for_by_it(project: Project):
    project.write("bot.json", '[{"x": "q1", "y": {"said": "Two."}, "z": ["a.md"]}]')
    said = lines_with(project.rageval("answers", "convert", "bot.json"), "row 1")
    assert said == ["ERROR: bot.json: row 1: holds no answer and no retrieved passages; its names are x, y, z; "
                    "--map FIELD=NAME says which is which"]  # fmt: skip
    project.rageval(
        "answers", "convert", "bot.json", "--map", "id=x", "--map", "answer=y.said", "--map", "retrieved_ids=z"
    )
    assert json.loads((project.path / "bot.answers.jsonl").read_text()) == {
        "id": "q1", "answer": "Two.", "retrieved_chunks": [{"rank": 1, "chunk_id": "a.md"}]
    }  # fmt: skip


HOTPOT = {"question": ONE, "answer": A, "supporting_facts": [["Doc", 0]], "context": [["Doc", ["A is", "one."]]]}


def test_what_has_not_the_shape_of_a_field_is_never_turned_into_text_of_it(tmp_path: Path):
    (case,) = read_rows(tmp_path, HOTPOT)
    assert (case.contexts, case.gold.chunk_ids) == (("A is one.",), ("Doc",))
    row = {"question": ONE, "answer": A, "context": [["Doc", [["deep"]]]], "key_facts": [{"fact": 1}]}
    (case,) = read_rows(tmp_path, row)
    assert (case.contexts, case.gold.key_facts) == (None, None)
    assert case.metadata == {"context": row["context"], "key_facts": row["key_facts"]}


def test_chats_are_read_by_their_last_question(tmp_path: Path):
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ONE}]
    (case,) = read_rows(tmp_path, {"messages": [*chat, {"role": "assistant", "content": A}]})
    assert case.question == ONE
    (case,) = read_rows(tmp_path, {"conversations": [{"from": "human", "value": ONE}, {"from": "gpt", "value": A}]})
    assert case.question == ONE
