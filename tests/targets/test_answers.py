from __future__ import annotations

import asyncio
import csv
import gc
import json
from pathlib import Path

import pytest

from pytest_rageval.errors import CaseError, TargetError
from pytest_rageval.model import Answer, AskRequest, Chunk, EvalCase, Reference, Source
from pytest_rageval.targets.answer_files import load_answers
from pytest_rageval.targets.answers_target import AnswersTarget

CASES = [
    EvalCase(name, f"{name} in {file}?", source=Source(f"{file}.jsonl", 1))
    for file, name in (("a", "q1"), ("a", "q2"), ("b", "q2"), ("b", "q3"))
]


def write(folder: Path, content: str | bytes | list[dict[str, object]], name: str = "given.jsonl") -> Path:
    path = folder / name
    if isinstance(content, list):
        content = "".join(json.dumps(row) + "\n" for row in content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def answers_of(path: Path, system: str | None = None) -> dict[str, Answer]:
    file = load_answers(path, system)
    return {key: file.answer(record) for key, record in file.records.items()}


def problems_of(path: Path, system: str | None = None) -> list[str]:
    with pytest.raises(CaseError) as caught:
        load_answers(path, system)
    assert all(problem.isprintable() for problem in caught.value.problems)
    return list(caught.value.problems)


def ask(target: AnswersTarget, key: str) -> Answer:
    return asyncio.run(target.ask(AskRequest("?", 5, case_key=key)))


def test_a_line_holds_an_id_and_whatever_an_answer_record_may_hold(tmp_path: Path):
    path = write(
        tmp_path,
        [
            {"id": "q1", "answer": "yes"},
            {
                "id": "q2",
                "answer": "no",
                "references": [{"rel_path": "a.md"}],
                "retrieved_chunks": [{"chunk_id": "c1", "rank": 1}],
                "abstained": False,
                "latency": {"retrieval_ms": 3},
                "model_name": "m",
                "timestamp": 1700000000,
                "meta": {"run": 1},
                "confidence": 0.5,
            },
        ],
    )
    assert answers_of(path) == {
        "q1": Answer(text="yes"),
        "q2": Answer(
            text="no",
            references=(Reference(rel_path="a.md"),),
            abstained=False,
            chunks=(Chunk("c1", rank=1),),
            latency={"retrieval_ms": 3.0},
            extra={"model_name": "m", "timestamp": 1700000000, "meta": {"run": 1, "confidence": 0.5}},
        ),
    }


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", [{"user_input": "Why?", "response": "So.", "retrieved_contexts": ["It is so."]}]),
        ("a.csv", "Frage,Antwort,Kontext\nWhy?,So.,It is so.\n"),
        ("b.csv", "Question,Model answer,Reference answer,passages\nWhy?,So.,No.,It is so.\n"),
        ("c.csv", "질문,답변,문맥\nWhy?,So.,It is so.\n"),
    ],
)
def test_names_of_people_and_other_tools_are_understood(tmp_path: Path, name: str, content: str):
    answers = load_answers(write(tmp_path, content, name))
    (record,) = answers.records.values()
    assert record.question == "Why?"
    answer = answers.answer(record)
    assert (answer.text, answer.chunks) == ("So.", (Chunk(text="It is so."),))


def test_a_blank_answer_or_an_empty_list_is_what_the_system_gave(tmp_path: Path):
    rows: list[dict[str, object]] = [
        {"id": "q1", "answer": ""},
        {"id": "q2", "retrieved_chunks": []},
        {"id": "q3", "answer": None, "abstained": True},
    ]
    assert answers_of(write(tmp_path, rows)) == {
        "q1": Answer(text=""),
        "q2": Answer(chunks=()),
        "q3": Answer(abstained=True),
    }  # fmt: skip


def test_all_that_is_wrong_with_a_file_is_said_at_once(tmp_path: Path):
    lines = [
        b'{"id": "q1", "answer": "x"}',
        b'{"id": "q1", "answer": "y"}',
        b'{"id": 7, "answer": "y"}',
        b'{"answer": "y"}',
        b'{"id": "q2"}',
        b'{"id": "q3", "answer": null}',  # no problem of the file: what the system gave
        b'{"id": "q4", "answer": ["x"]}',
        b'{"id": "q5", "answer": "x", "answer": "y"}',
        b'{"id": "q6", "answer": "x", "usage": {"n": NaN}}',
        b'{"id": "q7", "answer": "a\\ud800"}',
        b'{"id": "q8", "answer": "\xff"}',
        b'["q9"]',
        b'{"id": "q10", "answer": "x",}',
        b'{"id": " ", "answer": "x"}',
        b'{"id": "q11", "answer": "x", "more": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"id": "q12", "retrieved_chunks": [{"rank": "x"}]}',
        b'{"id": "q13", "answer": "x", "meta": "y"}',
    ]
    assert problems_of(write(tmp_path, b"\n".join(lines))) == [
        "given.jsonl:2:8: id 'q1' already has an answer at line 1",
        "given.jsonl:3:8: id is 7 (a number), expected a string",
        "given.jsonl:4:1: has no id, and no question to find its case by",
        "given.jsonl:5:1: case 'q2': holds neither 'answer' nor 'retrieved_chunks'",
        "given.jsonl:7:24: case 'q4': answer is a list, expected a string",
        "given.jsonl:8:29: case 'q5': answer stands twice in one object, first at column 14; keep one",
        "given.jsonl:9:44: case 'q6': usage.n is NaN, which is not a JSON number; write null, or leave it out",
        "given.jsonl:10:24: case 'q7': answer holds half of a surrogate pair (\\ud800), which is no character; "
        "remove it",
        "given.jsonl:11:25: byte 0xff at offset 319 is not UTF-8; save the file as UTF-8",
        "given.jsonl:12:1: is a list, expected an object; write one object a line (JSONL)",
        "given.jsonl:13:28: not valid JSON: a comma before the closing bracket",
        "given.jsonl:14:8: case ' ': id is blank",
        "given.jsonl:15:1: is nested too deep",
        "given.jsonl:16:45: case 'q12': retrieved_chunks[0].rank is 'x' (a string), expected a whole number",
        "given.jsonl:17:38: case 'q13': meta is 'y' (a string), expected an object",
    ]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('{"id":"q1","answer":"x","answer":"y"}', "answer"),
        ('{"id" : "q1", "answer":"x", "answer"\t: "y"}', "answer"),
        ('{"id":"q1","id" :"q2","answer":"x"}', "id"),
        ('{"id":"q1","answer":"x","debug":{"latency":{"a_ms":1,"a_ms":2}}}', "debug.latency.a_ms"),
        ('{"id":"q1","answer":"x","retrieved_chunks":[{"rank":1},{"rank":1,"rank":2}]}', "retrieved_chunks[1].rank"),
    ],
)
def test_a_key_that_stands_twice_is_found_however_it_is_written(tmp_path: Path, line: str, name: str):
    (problem,) = problems_of(write(tmp_path, line))
    assert f"{name} stands twice in one object" in problem


def test_texts_that_look_like_keys_are_read_as_they_are(tmp_path: Path):
    texts = ['a "b": c', 'a " : b', "extra", '{"extra": 1}']
    found = answers_of(write(tmp_path, [{"id": text, "answer": text} for text in texts]))
    assert [found[text].text for text in texts] == texts


def test_all_that_is_wrong_with_one_answer_is_said(tmp_path: Path):
    rows = [{"id": "q1", "answer": 7, "abstained": "no", "debug": {"trace": {"entities": [{"type": "Brand"}]}}}]
    assert problems_of(write(tmp_path, rows)) == [
        "given.jsonl:1:24: case 'q1': answer is 7 (a number), expected a string",
        "given.jsonl:1:40: case 'q1': abstained is 'no' (a string), expected true or false",
        "given.jsonl:1:79: case 'q1': debug.trace.entities[0] has no id",
    ]


def test_only_two_formats_are_read(tmp_path: Path):
    assert problems_of(write(tmp_path, "", "given.xlsx")) == [
        "given.xlsx: an answers file is .jsonl or .csv; `rageval answers convert` reads others"
    ]
    assert problems_of(tmp_path / "none.csv") == ["none.csv: does not exist"]
    assert problems_of(write(tmp_path, "")) == ["given.jsonl: holds no answers"]


def test_a_file_may_hold_several_systems_of_which_one_is_chosen(tmp_path: Path):
    path = write(tmp_path, [{"id": "q1", "system": name, "answer": name} for name in ("new", "old")])
    assert answers_of(path, "old")["q1"].text == "old"
    assert problems_of(path) == [
        "given.jsonl: holds several systems (new, old); choose one, as in answers:given.jsonl#new"
    ]
    assert problems_of(path, "odl") == ["given.jsonl: no system 'odl'; it has new, old"]


def test_the_only_system_of_a_file_need_not_be_named(tmp_path: Path):
    path = write(tmp_path, [{"id": "q1", "system": "new", "answer": "x"}])
    assert answers_of(path) == answers_of(path, "new")


def test_lines_with_and_without_a_system_do_not_mix(tmp_path: Path):
    path = write(tmp_path, [{"id": "q1", "system": "new", "answer": "x"}, {"id": "q1", "answer": "y"}])
    assert problems_of(path, "new") == ["given.jsonl:2:1: has no system, though other lines do; give it one"]


def test_a_csv_file_holds_a_record_a_row_with_json_in_structured_cells(tmp_path: Path):
    path = tmp_path / "given.csv"
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "answer", "abstained", "retrieved_chunks", "note", "model_name"])
        rows.writerow(["q1", "two\nlines", "", json.dumps([{"chunk_id": "c1", "text": "x" * 200_000}]), "n", "m"])
        rows.writerow(["q2", "", "TRUE", "", "", ""])
        rows.writerow(["q3", "NULL", "no", "[]", "", ""])
    before = csv.field_size_limit()
    assert answers_of(path) == {
        "q1": Answer(
            text="two\nlines",
            chunks=(Chunk("c1", text="x" * 200_000),),
            extra={"model_name": "m", "meta": {"note": "n"}},
        ),
        "q2": Answer(text="", abstained=True),
        "q3": Answer(text="NULL", abstained=False, chunks=()),
    }
    assert csv.field_size_limit() == before


def test_a_csv_file_may_hold_retrieved_chunks_alone(tmp_path: Path):
    path = write(tmp_path, 'id,retrieved_chunks\nq1,"[{""chunk_id"": ""c1""}]"\n', "given.csv")
    assert answers_of(path) == {"q1": Answer(chunks=(Chunk("c1"),))}


def test_all_that_is_wrong_with_a_csv_file_is_said_at_once(tmp_path: Path):
    content = (
        "id,answer,abstained,latency\n"
        'q1,"a\nb",,\n'
        "q2,  ,,\n"
        "q3,x,maybe,\n"
        "q4,x,,{bad\n"
        "q5,x\n"
        ",x,,\n"
        "q1,x,,\n"
        'q6,x,,"[1]"\n'
        'q7,"x\n'
    )
    assert problems_of(write(tmp_path, content, "given.csv")) == [
        "given.csv:4:1: case 'q2': answer is empty; where the system declined, say so with abstained = true",
        "given.csv:5:6: case 'q3': abstained is 'maybe', expected true or false (or yes, no, 1, 0)",
        "given.csv:6:7: case 'q4': latency is '{bad', expected JSON: expecting property name enclosed in double quotes "
        "at line 1, column 2 of the cell",
        "given.csv:7:1: the row has 2 cells, expected 4 (id, answer, abstained, latency); quote cells that hold commas "
        "or line breaks",
        "given.csv:8:1: has no id, and no question to find its case by",
        "given.csv:9:1: id 'q1' already has an answer at line 2",
        "given.csv:10:7: case 'q6': latency is a list, expected an object of numbers",
        "given.csv:11:1: the row has a quote that is never closed; the rest of the file was not read",
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "question,reference\n",
            "given.csv:1:1: the header has no column 'answer' or 'retrieved_chunks' or 'contexts'",
        ),
        ("id,answer\n", "given.csv: holds no answers"),
    ],
)
def test_a_csv_file_that_cannot_be_read_says_why(tmp_path: Path, content: str | bytes, said: str):
    assert problems_of(write(tmp_path, content, "given.csv"))[0] == said


def target_over(folder: Path, *ids: str) -> AnswersTarget:
    return AnswersTarget(load_answers(write(folder, [{"id": one, "answer": one} for one in ids])))


def test_a_read_line_leaves_nothing_behind_that_only_the_garbage_collector_could_take_away(tmp_path: Path):
    path = write(tmp_path, [{"id": f"q{number}", "answer": "a"} for number in range(200)])
    load_answers(path)  # builds the readers
    gc.disable()  # as it is while a file is read: of a million lines this would be half a gigabyte
    try:
        before = len(gc.get_objects())
        load_answers(path)
        assert len(gc.get_objects()) - before < 200
    finally:
        gc.enable()


def test_answers_are_found_by_id_and_by_full_key(tmp_path: Path):
    target = target_over(tmp_path, "q1", "b.jsonl::q2")
    assert target.name == "answers:given.jsonl"
    assert ask(target, "a.jsonl::q1").text == "q1"
    assert ask(target, "b.jsonl::q2").text == "b.jsonl::q2"
    with pytest.raises(TargetError, match=r"^given\.jsonl: no answer for a\.jsonl::q2$") as caught:
        ask(target, "a.jsonl::q2")
    assert caught.value.kind == "missing"


def test_full_coverage_has_no_problems(tmp_path: Path):
    assert target_over(tmp_path, "q1", "a.jsonl::q2", "b.jsonl::q2", "q3").check_coverage(CASES) == []


def test_everything_that_does_not_fit_is_listed(tmp_path: Path):
    target = target_over(tmp_path, "q1", "q2", "a.jsonl::q1", "a.jsonl::q22", "zz")
    assert target.check_coverage(CASES) == [
        "given.jsonl:2: id 'q2' stands in 2 case files; write a.jsonl::q2 or b.jsonl::q2",
        "given.jsonl:3: a.jsonl::q1 already has an answer at line 1",
        "given.jsonl:4: no case has the id 'a.jsonl::q22'; did you mean 'a.jsonl::q2'?",
        "given.jsonl:5: no case has the id 'zz'",
        "given.jsonl: no answer for b.jsonl::q3",
    ]


def test_missing_answers_may_be_allowed_but_not_unknown_ids(tmp_path: Path):
    target = target_over(tmp_path, "q1", "zz")
    assert target.check_coverage(CASES, is_partial_allowed=True) == ["given.jsonl:2: no case has the id 'zz'"]
    assert [target.of(case) is None for case in CASES] == [False, True, True, True]


def test_an_answer_without_an_id_is_that_of_the_case_with_its_question(tmp_path: Path):
    path = write(tmp_path, [{"question": "Q1  in A?", "answer": "one"}, {"question": "q3 in b?", "answer": "three"}])
    target = AnswersTarget(load_answers(path))
    assert target.check_coverage(CASES, is_partial_allowed=True) == []
    assert asyncio.run(target.ask(AskRequest("q1 in a?", 5, case_key="a.jsonl::q1"))).text == "one"


def test_questions_that_no_case_or_several_ask_and_second_answers_are_listed(tmp_path: Path):
    rows = [{"question": "q1 in a?"}, {"id": "q1"}, {"question": "Why?"}, {"question": "Q1 in a?"}, {"question": " "}]
    path = write(tmp_path, [{**row, "answer": "x"} for row in rows])
    assert problems_of(path) == [
        "given.jsonl:4:14: question 'Q1 in a?' already has an answer at line 1",
        "given.jsonl:5:1: has no id, and no question to find its case by",
    ]
    target = AnswersTarget(load_answers(write(tmp_path, [{**row, "answer": "x"} for row in rows[:3]])))
    twice = [*CASES, EvalCase("q9", "q3 in b?", source=Source("c.jsonl", 1))]
    assert target.check_coverage(CASES, is_partial_allowed=True) == [
        "given.jsonl:2: a.jsonl::q1 already has an answer at line 1",
        "given.jsonl:3: no case asks the question 'why?'",
    ]
    target = AnswersTarget(load_answers(write(tmp_path, [{"question": "q3 in b?", "answer": "x"}])))
    assert target.check_coverage(twice, is_partial_allowed=True) == [
        "given.jsonl:1: 2 cases ask the question 'q3 in b?'; give it an id: b.jsonl::q3 or c.jsonl::q9"
    ]


@pytest.mark.parametrize(
    ("contexts", "expected"), [(["one", "two"], ["one", "two"]), ("one", ["one"]), ([], []), (None, None)]
)
def test_contexts_are_the_texts_of_what_was_retrieved(tmp_path: Path, contexts: object, expected: list[str] | None):
    answer = answers_of(write(tmp_path, [{"id": "q1", "answer": "x", "contexts": contexts}]))["q1"]
    assert (None if answer.chunks is None else [chunk.text for chunk in answer.chunks]) == expected
    if expected:
        cell = json.dumps(contexts) if isinstance(contexts, list) else str(contexts)
        with (tmp_path / "given.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["id", "answer", "contexts"], ["q1", "x", cell]])
        assert answers_of(tmp_path / "given.csv") == {"q1": answer}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"contexts": [1]}, "contexts is a list, expected a text or a list of texts"),
        ({"contexts": ["a"], "retrieved_chunks": []}, "holds both contexts and retrieved_chunks; keep one"),
        ({"contexts": ["a"], "debug": {"retrieved_chunks": []}}, "holds both contexts and retrieved_chunks; keep one"),
    ],
)
def test_contexts_that_are_no_texts_or_stand_beside_chunks_are_refused(tmp_path: Path, row: dict, problem: str):
    assert problems_of(write(tmp_path, [{"id": "q1", "answer": "x", **row}])) == [
        f"given.jsonl:1:1: case 'q1': {problem}"
    ]


def test_an_answer_is_what_the_file_said_when_it_was_read_or_an_error(tmp_path: Path):
    target = target_over(tmp_path, "q1", "q2")
    write(tmp_path, "not JSON any more\n", "other.jsonl").replace(tmp_path / "given.jsonl")
    assert ask(target, "a.jsonl::q2").text == "q2", "the file that was read is still there for us"
    target = target_over(tmp_path, "q1", "q2")
    (tmp_path / "given.jsonl").write_text("not JSON any more\n")
    with pytest.raises(TargetError, match=r"^given\.jsonl was changed while it was used; run again$"):
        ask(target, "a.jsonl::q2")
