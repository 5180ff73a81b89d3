"""Records read by pydantic, with all that is wrong in our words and the name that was probably meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, Field

from pytest_rageval.io.expected import Expects
from pytest_rageval.io.messages import Unsound
from pytest_rageval.io.records import Name, RecordReader
from pytest_rageval.io.suggestions import KEY_CUTOFF, listed, suggestion


@dataclass(frozen=True, slots=True)
class Turn:
    role: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    path: Name
    heading: str = ""


def lower_case(value: str) -> str:
    if value != value.lower():
        raise ValueError("is not in lower case")
    return value


@dataclass(frozen=True, slots=True)
class Record:
    id: Name = "a"
    word: Annotated[str, AfterValidator(lower_case)] = ""
    flag: bool = False
    count: int = 0
    least: Annotated[int, Field(ge=1)] = 1
    score: Annotated[float, Field(ge=0, le=4), Expects("a number from 0 to 4")] | None = None
    weights: dict[str, float] | None = None
    tags: tuple[Name, ...] = ()
    answer: str | tuple[Name, ...] | None = None
    kind: Literal["first", "second"] | None = None
    group: Annotated[tuple[int, ...], Field(min_length=1), Expects(broken="is empty; leave it out")] = (0,)
    places: tuple[Place, ...] = ()
    turns: tuple[Turn, ...] = ()
    anything: dict[str, Any] | None = None


RECORDS = RecordReader[Record](Record)


def wrong(value: Any, reader: RecordReader[Any] = RECORDS) -> list[str]:
    with pytest.raises(Unsound) as caught:
        reader.read(value)
    return [str(finding) for finding in caught.value.findings.first]


def test_a_sound_record_becomes_the_dataclass():
    record = RECORDS.read(
        {"tags": ["x"], "score": 3, "places": [{"path": "a.md"}], "turns": [{"role": "user", "text": "b"}]}
    )
    assert record == Record(tags=("x",), score=3.0, places=(Place("a.md"),), turns=(Turn("user", "b"),))


def test_null_equals_absent_everywhere_but_in_what_is_free():
    record = RECORDS.read({"id": None, "places": [{"path": "a.md", "heading": None}], "anything": {"n": None}})
    assert record == Record(places=(Place("a.md"),), anything={"n": None})


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"id": 3}, "id is 3 (a number), expected a string"),
    ({"id": "\x1f\u3000"}, "id is blank"),
    ({"word": "A"}, "word is not in lower case"),
    ({"flag": 1}, "flag is 1 (a number), expected true or false"),
    ({"flag": "true"}, "flag is 'true' (a string), expected true or false"),
    ({"count": True}, "count is true, expected a whole number"),
    ({"count": "1"}, "count is '1' (a string), expected a whole number"),
    ({"count": 1.0}, "count is 1.0 (a number), expected a whole number"),
    ({"least": 0}, "least is 0 (a number), expected a whole number of 1 or more"),
    ({"score": 7}, "score is 7 (a number), expected a number from 0 to 4"),
    ({"score": True}, "score is true, expected a number from 0 to 4"),
    ({"weights": {"a": float("nan")}}, "weights.a is nan (a number), expected a finite number"),
    ({"weights": {"a": 10**400}}, f"weights.a is 1{'0' * 78}… (a number), expected a number"),
    ({"weights": ["a"]}, "weights is a list, expected an object of numbers"),
    ({"tags": "x"}, "tags is 'x' (a string), expected a list of strings"),
    ({"tags": ["a", None]}, "tags[1] is null, expected a string"),
    ({"answer": 42}, "answer is 42 (a number), expected a string or a list of strings"),
    ({"answer": ["a", ""]}, "answer[1] is blank"),
    ({"kind": "frist"}, "kind is 'frist' (a string), expected one of first, second; did you mean 'first'?"),
    ({"kind": 1}, "kind is 1 (a number), expected one of first, second"),
    ({"group": []}, "group is empty; leave it out"),
    ({"group": 0}, "group is 0 (a number), expected a list of whole numbers, at least 1"),
    ({"places": [{"heading": "a"}]}, "places[0] has no path"),
    ({"places": [{"path": None}]}, "places[0] has no path"),
    ({"places": ["a.md"]}, "places[0] is 'a.md' (a string), expected {path, heading}"),
    ({"places": [{"pth": "a.md"}]}, "places[0].pth is not a known key; did you mean 'path'?"),
    ({"turns": [["user", "b"]]}, "turns[0] is a list, expected {role, text}"),
    ({"turns": [{"role": "user", "content": "b"}]}, "turns[0].content is not a known key; known here: role, text"),
    ({"tgas": None}, "tgas is not a known key; did you mean 'tags'?"),
]


@pytest.mark.parametrize(("record", "message"), WRONG)
def test_what_is_wrong_is_said_with_place_value_and_remedy(record: dict[str, Any], message: str):
    assert wrong(record) == [message]


def test_everything_is_said_at_once_in_the_order_of_the_record():
    record = {"turns": [{"text": 1}, 2], "x": 1, "flag": 0, "places": [{"heading": 1, "path": ""}], "count": "1"}
    places = [message.split(" ")[0] for message in wrong(record)]
    assert places == [
        "turns[0].text",
        "turns[0]",
        "turns[1]",
        "x",
        "flag",
        "places[0].heading",
        "places[0].path",
        "count",
    ]


def test_a_reader_may_say_what_to_do_with_unknown_keys_of_the_record_and_suggest_others():
    reader = RecordReader[Record](Record, remedy="drop it", elsewhere=["gold.concepts"])
    assert wrong({"foo": 1}, reader) == ["foo is not a known key; drop it"]
    assert wrong({"concepts": []}, reader) == ["concepts is not a known key; did you mean 'gold.concepts'?"]
    assert wrong({"places": [{"foo": 1, "path": "a"}]}, reader) == [
        "places[0].foo is not a known key; known here: heading, path"
    ]


def test_a_record_with_problems_without_end_is_read_in_time():
    record = {f"k{number}": 1 for number in range(30_000)}
    with pytest.raises(Unsound) as caught:
        RECORDS.read(record)
    assert (len(caught.value.findings.first), caught.value.findings.more) == (20, 29_980)


def test_a_reader_may_take_whole_floats():
    reader = RecordReader[Record](Record, takes_whole_floats=True)
    assert reader.read({"count": 3.0}) == Record(count=3)
    assert wrong({"count": 3.5}, reader) == ["count is 3.5 (a number), expected a whole number"]


def test_long_lists_of_problems_are_counted_and_the_first_ones_shown():
    with pytest.raises(Unsound) as caught:
        RECORDS.read({"tags": [1] * 5000, "flag": 1})
    findings = caught.value.findings
    assert [finding.path for finding in findings.first] == [("tags", position) for position in range(20)]
    assert findings.more == 4981


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("mmr", "mrr"),
        ("MRR", "mrr"),
        ("ｍｒｒ", "mrr"),
        ("rel_path", "gold.rel_path"),
        ("Rel_Pth", "gold.rel_path"),
        ("zzz", None),
        ("m" * 81, None),
        ("mr" + "r" * 78, None),
    ],
)
def test_the_known_name_that_was_probably_meant(name: str, meant: str | None):
    assert suggestion(name, ["mrr", "gold.rel_path"]) == meant


@pytest.mark.parametrize(
    ("key", "meant"), [("qestion", "question"), ("context", "contexts"), ("session", None), ("notes", None)]
)
def test_a_key_of_another_meaning_is_no_mistyped_one(key: str, meant: str | None):
    assert suggestion(key, ["question", "contexts"], cutoff=KEY_CUTOFF) == meant


def test_of_names_that_differ_in_case_the_one_written_more_alike_is_meant():
    assert suggestion("Brnd", ["brand", "Brand"]) == "Brand"
    assert suggestion("brnd", ["brand", "Brand"]) == "brand"


def test_among_very_many_names_only_the_same_one_is_found():
    known = [f"case-{number}" for number in range(3000)]
    assert suggestion("CASE-17", known) == "case-17"
    assert suggestion("cas-17", known) is None


@pytest.mark.parametrize(
    ("names", "most", "text"),
    [
        ([], 2, ""),
        (["a", "b"], 2, "a, b"),
        (["a", "b", "c"], 2, "a, b and 1 more"),
        (["a", "b", "c"], 0, "and 3 more"),
        ([str(number) for number in range(2001)], 1, "0 and 2,000 more"),
    ],
)
def test_a_list_is_cut_and_says_so(names: list[str], most: int, text: str):
    assert listed(names, most) == text
