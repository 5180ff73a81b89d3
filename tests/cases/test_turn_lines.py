"""Lines with the turns of a conversation: each turn a case, its golds its own, what is wrong said with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from case_files import loaded

from pytest_rageval.cases.canonical import asked_hash, case_from_mapping, case_to_mapping, content_hash
from pytest_rageval.cases.conversations import alone, records_of_file
from pytest_rageval.model import EvalCase, Turn

RETURNS = {
    "id": "returns",
    "category": "policy",
    "tags": ["shop"],
    "expected_outcome": "The customer knows both prices.",
    "turns": [
        {
            "question": "What does a return cost?",
            "gold": {"answer": "4 euros"},
            "gold_supports": [{"rel_path": "r.md"}],
        },
        {"question": "And from Jeju?", "standalone": "What does a return from Jeju cost?", "reference": "6 euros"},
        {"question": "Thanks!", "conversational": True, "category": "talk"},
        {"query": "Who won the election in 2087?", "answerable": False},
    ],
}


def turns_of(folder: Path, **line: Any) -> list[EvalCase]:
    """The cases of one sound line."""
    file = loaded(folder, json.dumps(line))
    assert file.problems == ()
    return list(file.cases)


def problems_of(folder: Path, *lines: dict[str, Any]) -> list[str]:
    return list(loaded(folder, "\n".join(map(json.dumps, lines))).problems)


def test_each_turn_is_a_case_with_the_fields_of_its_conversation(tmp_path: Path):
    first, second, third, last = turns_of(tmp_path, **RETURNS)
    assert [case.id for case in (first, second, third, last)] == [f"returns[{number}]" for number in range(1, 5)]
    assert [case.category for case in (first, second, third, last)] == ["policy", "policy", "talk", "policy"]
    assert second.key == "a.jsonl::returns[2]"
    assert (second.conversation, second.turn, second.tags) == ("returns", 2, ("shop",))
    assert second.rewrite == "What does a return from Jeju cost?"
    assert (third.conversational, second.conversational) == (True, False)
    assert last.question == "Who won the election in 2087?"
    assert not last.answerable
    assert {case.expected_outcome for case in (first, last)} == {"The customer knows both prices."}


def test_no_turn_has_the_gold_of_another(tmp_path: Path):
    first, second, third, _ = turns_of(tmp_path, **RETURNS)
    assert (first.gold.answers, second.gold.answers, third.gold.answers) == (("4 euros",), ("6 euros",), None)
    assert (first.gold.supports is None, second.gold.supports) == (False, None)


@pytest.mark.parametrize(
    "gold", [{"gold": {"answer": "4"}}, {"reference": "4"}, {"relevant_ids": ["a"]}, {"assert": [{"icontains": "4"}]}]
)
def test_gold_beside_the_turns_is_refused_and_no_turns_gold(tmp_path: Path, gold: dict[str, Any]):
    (problem,) = problems_of(tmp_path, {"id": "a", **gold, "turns": [{"question": "What?"}]})
    (name,) = gold
    assert f": case 'a': {name} is gold of no turn; write it into its turn, or say it as 'expected_outcome'" in problem


def test_messages_of_a_chat_are_turns_whose_replies_are_references(tmp_path: Path):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What does it cost?"},
        {"role": "assistant", "content": "4 euros"},
        {"role": "user", "content": [{"type": "text", "text": "And from Jeju?"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "t"}]},
        {"role": "tool", "content": "6"},
        {"role": "assistant", "content": "6 euros"},
        {"role": "user", "content": "Thanks"},
    ]
    for key in ("messages", "turns"):
        cases = turns_of(tmp_path, id="chat", **{key: messages})
        assert [case.question for case in cases] == ["What does it cost?", "And from Jeju?", "Thanks"]
        assert [case.gold.answers for case in cases] == [("4 euros",), ("6 euros",), None]
        assert {case.history for case in cases} == {(Turn("system", "Be brief."),)}


def test_a_turn_knows_what_is_asked_before_it_and_reads_back_equal(tmp_path: Path):
    cases = turns_of(tmp_path, **RETURNS)
    assert [turn.question for turn in cases[2].earlier] == ["What does a return cost?", "And from Jeju?"]
    assert [turn.reference for turn in cases[2].earlier] == ["4 euros", "6 euros"]
    assert [case_from_mapping(case_to_mapping(case)) for case in cases] == cases
    assert cases[2].earlier_case(2).key == cases[1].key


def test_a_turn_after_another_question_is_another_case_to_compare(tmp_path: Path):
    before = turns_of(tmp_path, **RETURNS)
    changed = [{"question": "What does an exchange cost?"}, *RETURNS["turns"][1:]]
    after = turns_of(tmp_path, **RETURNS | {"turns": changed})
    assert before[1].question == after[1].question
    assert asked_hash(before[1]) != asked_hash(after[1])
    # The name of the conversation decides nothing, and its outcome only where it is judged: at the end.
    renamed = turns_of(tmp_path, **RETURNS | {"id": "other"})
    assert [*map(asked_hash, renamed)] == [*map(asked_hash, before)]
    elsewhere = turns_of(tmp_path, **RETURNS | {"expected_outcome": "Else."})
    pairs = zip(before, elsewhere, strict=True)
    assert [case.turn for case, other in pairs if asked_hash(case) != asked_hash(other)] == [len(before)]


def test_a_turn_at_the_end_does_not_change_the_one_that_was_last(tmp_path: Path):
    before = turns_of(tmp_path, **RETURNS)
    after = turns_of(tmp_path, **RETURNS | {"turns": [*RETURNS["turns"], {"question": "Bye!"}]})
    assert [case.is_last for case in before] == [False, False, False, True]
    assert [case.is_last for case in after] == [False, False, False, False, True]
    assert [*map(content_hash, after[:-1])] == [*map(content_hash, before)]
    (single,) = [alone(case) for case in before[-1:]]
    assert not single.is_last


def test_a_table_can_hold_turns_in_a_cell(tmp_path: Path):
    cell = json.dumps([{"question": "a?"}, {"question": "b?"}]).replace('"', '""')
    file = loaded(tmp_path, f'id,category,turns\nc,talk,"{cell}"\n', "a.csv")
    assert file.problems == ()
    assert [(case.id, case.category) for case in file.cases] == [("c[1]", "talk"), ("c[2]", "talk")]


def test_a_conversation_without_id_has_one_of_its_content(tmp_path: Path):
    cases = turns_of(tmp_path, turns=[{"question": "a?"}, {"question": "b?"}])
    assert cases == turns_of(tmp_path, turns=[{"question": "a?"}, {"question": "b?"}])
    assert len({case.conversation for case in cases}) == 1


ASKED = {"question": "a?"}
WRONG = [
    ({"turns": []}, "[]", "turns is [], expected a list with a turn or more"),
    ({"turns": "two"}, '"two"', "turns is 'two', expected a list with a turn or more"),
    ({"turns": [ASKED, {"category": "x"}]}, '{"category"', "turns[1] question is missing"),
    ({"turns": [ASKED, "and?"]}, '"and?"', "turns[1] is 'and?', expected an object such as {\"question\": …}"),
    ({"turns": [ASKED] * 501}, "[{", "turns has 501 members, more than 500; divide it"),
    ({"question": "q?", "turns": [ASKED]}, '"q?"', "question stands beside 'turns', which hold the questions; remove"),
    ({"turns": [ASKED], "messages": [{"role": "user", "content": "b?"}]}, '[{"role"', "messages stands beside 'turns'"),
    ({"turns": [{**ASKED, "gold_suports": []}]}, '"gold_suports"', "turns[0].gold_suports is not a known key; did you"),
    (
        {"turns": [{**ASKED, "history": [{"role": "user", "text": "x"}]}]},
        '[{"role"',
        "turns[0].history is of the whole",
    ),
    ({"turns": [{**ASKED, "id": "p"}, {"question": "b?", "id": "p"}]}, '"p"', "turns[1].id is already used by turn 1"),
    ({"difficulty": 3, "turns": [ASKED, ASKED]}, "3", "difficulty is 3 (a number), expected a string"),
    ({"messages": [{"role": "assistant", "content": "x"}]}, '[{"role"', "messages holds no message of the role 'user'"),
    (
        {"messages": [{"role": "bot", "content": "x"}, {"role": "user", "content": "b?"}]},
        '{"role": "bot"',
        "messages[0]",
    ),
]


@pytest.mark.parametrize(("line", "place", "message"), WRONG, ids=[message[:24] for _, _, message in WRONG])
def test_what_is_wrong_with_turns_is_one_line_with_its_place(
    tmp_path: Path, line: dict[str, Any], place: str, message: str
):
    written = {"id": "a", **line}
    (problem,) = problems_of(tmp_path, written)
    column = json.dumps(written).rindex(place) + 1
    assert problem.startswith(f"a.jsonl:1:{column}: case 'a': {message}")


@pytest.mark.parametrize("other", ["talk", "talk[1]"])
def test_a_case_and_a_conversation_of_one_id_are_told_apart(tmp_path: Path, other: str):
    lines: list[dict[str, Any]] = [{"id": "talk", "turns": [ASKED]}, {"id": other, "question": "b?"}]
    assert problems_of(tmp_path, *lines) == [f"a.jsonl:2:1: case {other!r}: id already used at line 1; {UNIQUE}"]
    assert problems_of(tmp_path, *lines[::-1]) == [f"a.jsonl:2:1: case {other!r}: id already used at line 1; {UNIQUE}"]


UNIQUE = "ids are unique in a file"


def test_cases_are_written_as_a_file_that_reads_back_as_them(tmp_path: Path):
    lines = [RETURNS, {"id": "plain", "question": "x?"}, {"id": "t", "turns": [ASKED], "history": [SYSTEM]}]
    cases = loaded(tmp_path, "\n".join(map(json.dumps, lines))).cases
    written = "\n".join(json.dumps(record) for record in records_of_file(cases))
    assert len(written.splitlines()) == 3
    assert loaded(tmp_path, written).cases == cases


SYSTEM = {"role": "system", "text": "Be brief."}


def test_for_tools_without_conversations_a_turn_has_the_references_as_history(tmp_path: Path):
    _, second, *_ = turns_of(tmp_path, **RETURNS)
    single = alone(second)
    assert (single.conversation, single.turn, single.earlier) == (None, None, ())
    assert single.history == (Turn("user", "What does a return cost?"), Turn("assistant", "4 euros"))
