"""What columns of foreign files mean: whether there is an answer, and what is asked where it could be two things."""

from __future__ import annotations

import json

import pytest
from project import Project, lines_with

from pytest_rageval.cases.answerability import answerable_by, behaviour_of, is_unanswerable_kind, sign_of, truth_of
from pytest_rageval.cases.exchange.gold_objects import pages_of
from pytest_rageval.cases.exchange.printed import printed_value
from pytest_rageval.cases.exchange.values import listed_facts
from pytest_rageval.cases.loading import load_file

YES = (
    "answerable is_answerable in_scope inScope has_answer should_answer can_be_answered answer_in_context "
    "Beantwortbar beantwortbar_(ja/nein) Répondable respondible rispondibile 답변가능 답변가능여부 回答可能 是否可回答"
)
NO = (
    "unanswerable isUnanswerable is_impossible out_of_scope no_answer expected_refusal should_refuse shouldAbstain "
    "must_abstain expect_idk is_rejection not_answerable unbeantwortbar sin_respuesta 답변불가 回答不可 无法回答"
)


def test_names_say_whether_a_column_is_a_flag_or_its_opposite():
    assert {name: sign_of(name) for name in YES.split()} == dict.fromkeys(YES.split(), "answerable")
    assert {name: sign_of(name) for name in NO.split()} == dict.fromkeys(NO.split(), "unanswerable")


@pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("Aus Doku beantwortbar?", "answerable"), ("Answerable from docs?", "answerable"),
        ("Can be answered from KB?", "answerable"), ("Im Handbuch beantwortbar?", "answerable"),
        ("¿Se puede responder con los documentos?", "answerable"), ("Répondable avec la doc ?", "answerable"),
        ("문서로 답변 가능?", "answerable"), ("資料で回答可能か", "answerable"),
        ("Should the bot answer?", "answerable"),
        ("Mit Doku nicht beantwortbar", "unanswerable"), ("Not answerable from docs", "unanswerable"),
        ("文書から回答不可", "unanswerable"), ("supported_docs", None), ("answerable comment", None),
        ("Antwort aus Doku", None), ("answered question", None), ("模範回答", None),
    ],
)  # fmt: skip
def test_words_around_a_flag_do_not_hide_it(name, sign):
    assert sign_of(name) == sign


@pytest.mark.parametrize(
    "name", ["answer", "expected", "question", "unanswerable_reason", "refusal_message", "context"]
)
def test_other_names_are_no_flags(name):
    assert sign_of(name) is None


@pytest.mark.parametrize(
    ("value", "flag"),
    [
        (True, True), (0, False), ("ja", True), ("Nein", False), ("예", True), ("아니오", False), ("はい", True),
        ("いいえ", False), ("是", True), ("否", False), ("oui", True), ("não", False), ("sí", True), ("O", True),
        ("X", False), ("mostly", None), (2, None), (["no"], None),
    ],
)  # fmt: skip
def test_flags_are_read_in_several_languages(value, flag):
    assert truth_of(value) is flag
    assert answerable_by("unanswerable", value) is (None if flag is None else not flag)


@pytest.mark.parametrize(
    ("verb", "flag"),
    [
        ("answer", True), ("answer_with_citation", True), ("grounded_answer", True), ("refuse", False),
        ("refuse_and_redirect", False), ("abstain", False), ("decline", False), ("no-answer", False), ("clarify", None),
        ("Mention both plans.", None),
    ],
)  # fmt: skip
def test_expected_behaviour_says_whether_there_is_an_answer(verb, flag):
    assert behaviour_of(verb) is flag


@pytest.mark.parametrize(
    "label", ["unanswerable", "Unanswerable", "no_answer", "out-of-scope", "OOS", "not in corpus", "답변불가", "无答案"]
)
def test_these_categories_have_no_answer(label):
    assert is_unanswerable_kind(label)


@pytest.mark.parametrize("label", ["factual", "answerable", "scope", "multi_hop", "negation", "x" * 200])
def test_other_categories_say_nothing(label):
    assert not is_unanswerable_kind(label)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("['a' 'b']", ["a", "b"]),
        ("['a'\n 'it\\'s' \"b\"]", ["a", "it's", "b"]),
        ("array(['a', 'b'], dtype=object)", ["a", "b"]),
        ("[1 2 nan]", [1, 2]),
        ("['a', None]", ["a"]),
        ('["a", "b"]', ["a", "b"]),
        ("{'a': ['b']}", {"a": ["b"]}),
        ("{'a': array(['b', \"c's\"], dtype=object)}", {"a": ["b", "c's"]}),
        ("{'a': array([array(['b'], dtype=object),\n array([0, 1])], dtype=object)}", {"a": [["b"], [0, 1]]}),
        ("{'a': array([['b', 'c'], ['d', 'e']])}", {"a": [["b", "c"], ["d", "e"]]}),
        ("{'a': exit([0])}", None),
        ("[see below]", None),
        ("['a' ... 'b']", None),
        ("[" * 5000, None),
        ("plain", None),
    ],
)
def test_printed_lists_are_lists(text, value):
    assert printed_value(text) == value


@pytest.mark.parametrize(
    ("value", "pages"),
    [
        (4, [4]), ("4", [4]), ("p. 4", [4]), ("S. 3-5", [3, 4, 5]), ("3, 7", [3, 7]), ([1, [2]], [1, 2]), ("5쪽", [5]),
        (4.0, [4]), ("intro", None), (True, None), ("1-999", None),
    ],
)  # fmt: skip
def test_pages_are_read_as_people_write_them(value, pages):
    assert pages_of(value) == pages


@pytest.mark.parametrize(
    ("value", "facts"),
    [
        ("50,000 euros", ["50,000 euros"]),
        ("50,000, at once", ["50,000", "at once"]),
        ("a|b, c", ["a", "b, c"]),
        ([{"fact": "a"}, "b"], ["a", "b"]),
        ([["a"]], None),
    ],
)
def test_facts_are_parted_but_not_their_numbers(value, facts):
    assert listed_facts(value) == facts


# ── on the command line ───────────────────────────────────────────────────────────────────────────────────────


def converted(project: Project, *rows: object, options: tuple[str, ...] = ()):
    project.write("set.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    ended = project.rageval("cases", "convert", "set.jsonl", "-o", "new.jsonl", "--force", *options)
    path = project.path / "new.jsonl"
    cases = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if ended.ret == 0 else None
    return ended, cases


FIRST = {"question": "Which port?", "expected_answer": "8080", "supported_by": "mostly", "answerable": "mostly"}


def test_a_flag_that_cannot_be_read_stops_the_conversion_with_a_question(project: Project):
    ended, _ = converted(project, FIRST)
    assert ended.ret == 2
    (line,) = lines_with(ended, "seems to say whether there is an answer")
    assert "'mostly'" in line
    assert "--map answerable=" in line
    assert lines_with(ended, "nothing is converted; --yes takes the first meaning of each")
    assert not (project.path / "new.jsonl").exists()


def test_what_the_question_proposes_is_accepted(project: Project):
    proposed = 'answerable == `"mostly"`'
    assert lines_with(converted(project, FIRST)[0], f"--map 'answerable={proposed}'")
    _, cases = converted(project, FIRST, {**FIRST, "answerable": "never"}, options=("--map", f"answerable={proposed}"))
    assert [case.get("answerable", True) for case in cases] == [True, False]
    _, cases = converted(project, FIRST, options=("--map", "answerable="))
    assert cases[0]["metadata"]["answerable"] == "mostly"


def test_a_column_of_the_opposite_can_be_mapped_as_it_is(project: Project):
    rows = [{"q": "Who?", "trap": 1, "a": ""}, {"q": "When?", "trap": 0, "a": "Now."}]
    maps = ("--map", "question=q", "--map", "gold.answer=a", "--map", "answerable=trap == `0`")
    _, cases = converted(project, *rows, options=maps)
    assert [case.get("answerable", True) for case in cases] == [False, True]
    rows = [{"q": "Who?", "is_impossible": "yes", "a": ""}]
    maps = ("--map", "question=q", "--map", "gold.answer=a", "--map", "answerable=is_impossible")
    _, (case,) = converted(project, *rows, options=maps)
    assert case["answerable"] is False


def test_yes_takes_the_first_of_two_columns_and_says_which_in_the_first_case(project: Project):
    row = {"question": "Which port?", "expected_answer": "8080", "ground_truth": "Port 8080"}
    ended, _ = converted(project, row)
    assert ended.ret == 2
    assert lines_with(ended, "--map gold.answer=expected_answer or --map gold.answer=ground_truth")
    ended, cases = converted(project, row, options=("--yes",))
    assert cases[0]["reference"] == "8080"
    assert lines_with(ended, "first case: question 'Which port?', gold '8080', answerable yes")


def test_the_answer_of_a_run_is_never_the_gold_without_being_told(project: Project):
    row = {"question": "Which port?", "answer": "8081", "latency_ms": 12}
    ended, _ = converted(project, row)
    assert ended.ret == 2
    assert lines_with(ended, "answer is the right answer or the system's (beside latency_ms)")
    _, cases = converted(project, row, options=("--yes",))
    assert "reference" not in cases[0]


def test_an_id_can_be_switched_off(project: Project):
    rows = [{"id": "t", "question": "Which?", "expected": "A."}, {"id": "t", "question": "Who?", "expected": "B."}]
    ended, _ = converted(project, *rows)
    assert ended.ret == 2
    assert lines_with(ended, "--map id= reads none")
    maps = ("--map", "id=", "--map", "question=question", "--map", "gold.answer=expected")
    _, cases = converted(project, *rows, options=maps)
    assert len({case["id"] for case in cases}) == 2


def test_a_question_without_an_answer_keeps_its_gold_in_the_metadata(project: Project):
    row = {"question": "Who?", "expected_answer": "Not known.", "source": "a.md", "unanswerable": True}
    ended, (case,) = (
        converted(project, {"question": "Which?", "expected_answer": "A."}, row)[0],
        [json.loads((project.path / "new.jsonl").read_text("utf-8").splitlines()[1])],
    )
    assert case["answerable"] is False
    assert case["metadata"] == {"expected_answer": "Not known.", "source": "a.md"}
    assert lines_with(ended, "looks like gold") == []
    assert lines_with(ended, "answerable yes; first without an answer: 'Who?'")


# ── in files of ours ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("category", ["unanswerable", "no_answer", "out_of_scope", "Out-of-scope"])
def test_such_a_category_of_a_case_file_means_unanswerable(project: Project, category: str):
    path = project.cases([{"id": "a", "question": "Who?", "category": category}])
    (case,) = load_file(path, project.path).cases
    assert not case.answerable
    assert project.rageval("cases", "validate").ret == 0


def test_a_case_of_such_a_category_with_places_has_to_say_which(project: Project):
    place = {"gold_supports": [{"rel_path": "a.md"}]}
    project.cases([{"id": "a", "question": "Who?", "category": "unanswerable", **place}])
    (line,) = lines_with(project.rageval("cases", "validate"), "case 'a'")
    assert "category 'unanswerable' says that there is none; add 'answerable'" in line
    project.cases([{"id": "a", "question": "Who?", "category": "unanswerable", "answerable": True, **place}])
    assert project.rageval("cases", "validate").ret == 0


def test_names_and_cells_of_any_length_are_read_in_time(project: Project):
    row = {"question": "Which?", "expected_answer": "This.", "a" * 300_000: "v", "b.c" * 100_000: "v"}
    row |= {"contexts": "['" + "a" * 300_000, "keywords": "a," * 100_000, "page": "1-" * 100_000, "note": "[" * 300_000}
    _, cases = converted(project, row)
    assert cases[0]["reference"] == "This."
