"""The audit of labels: golds against notes, index and stored runs; questions and categories by themselves."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from project import Project, a_case, a_missed_case, lines_with

from pytest_rageval.cases.loading import load_file
from pytest_rageval.cases.note_folder import note_hash
from pytest_rageval.check.audit import likeness, near_duplicates, shingles
from pytest_rageval.matching.dialects import PlaceRules
from pytest_rageval.matching.places import match
from pytest_rageval.model import Answer, Chunk

WATER = """---
title: Water
---
# Water

All about it.

## Boiling

Water boils at **100 degrees** at sea level.

```
# no heading
```

## Freezing

- Water freezes at 0 degrees.
"""


@pytest.fixture
def audited(project: Project) -> Project:
    project.write("vault/notes/water.md", WATER)
    project.write("vault/notes/scan.pdf", "%PDF")
    return project


def gold(
    rel_path: str = "notes/water.md", heading_path: str = "# Water > ## Boiling", *snippets: str
) -> dict[str, Any]:
    return {"rel_path": rel_path, "heading_path": heading_path, "snippets": list(snippets)}


def audit(project: Project, *arguments: str) -> Any:
    return project.rageval("cases", "audit", "--docs", "vault", *arguments)


def findings(project: Project, *arguments: str) -> dict[str, list[str]]:
    """Kinds of findings by the ids of the cases."""
    found: dict[str, list[str]] = {}
    for finding in json.loads(audit(project, "--json", *arguments).stdout.str())["findings"]:
        found.setdefault(finding["case"].partition("::")[2], []).append(finding["kind"])
    return found


@pytest.mark.parametrize(
    "place",
    [
        gold(), gold(heading_path=""), gold("vault/notes/water.md"),
        gold("water.md"), gold("./notes/water.md"), gold("notes\\water.md"), gold("notes/scan.pdf", "Page 3"),
        gold("notes/water.md", "# Water > ## Boiling", "WATER boils at 100 degrees"),
        gold("notes/water.md", "# Water > ## Boiling", "at **100 degrees** at"),
        gold("notes/water.md", "# Water", "gone", "Water freezes at 0"),
        gold("notes/water.md", "WATER > Boiling {#boiling}", "Ｗater boils"),
    ],
)  # fmt: skip
def test_a_gold_that_the_notes_hold_is_no_finding(audited: Project, place: dict[str, Any]):
    audited.cases([a_case("boil", gold_supports=[place])])
    result = audit(audited)
    assert (result.ret, result.outlines) == (0, ["0 of 1 case cannot be won, 0 findings"])


def test_a_gold_that_covers_a_whole_note_is_named_and_can_be_won(audited: Project):
    audited.cases([a_case("boil", gold_supports=[gold(heading_path="# Water")])])
    result = audit(audited)
    assert result.ret == 0
    assert "gold_supports[0] 'notes/water.md > # Water' covers 3 sections, the whole note" in result.outlines[0]
    audited.cases([a_case("boil", gold_supports=[gold("notes/water.md", "# Water", "Water freezes at 0")])])
    assert audit(audited).outlines == ["0 of 1 case cannot be won, 0 findings"]


@pytest.mark.parametrize("heading", ["Boiling", "2. Boiling", "Water > 1.1 Boiling"])
def test_a_gold_that_a_run_matches_is_not_called_unwinnable(audited: Project, heading: str):
    audited.cases([a_case("boil", gold_supports=[gold(heading_path=heading)])])
    section = Chunk(rel_path="notes/water.md", heading_path="# Water > ## Boiling", text="Water boils at 100 degrees")
    case = load_file(audited.path / "evalcases/a.jsonl", audited.path).cases[0]
    assert any(match(case, Answer(chunks=(section,)), rules=PlaceRules()).hits or ())
    assert audit(audited).ret == 0


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (gold("notes/watr.md"),
         "gold_supports[0].rel_path 'notes/watr.md' is no note below vault; did you mean 'vault/notes/water.md'?"),
        (gold(heading_path="# Water > ## Boilng"),
         "gold_supports[0].heading_path '# Water > ## Boilng' is no heading of 'notes/water.md'; "
         "did you mean '# Water > ## Boiling'?"),
        (gold(heading_path="# no heading"), "gold_supports[0].heading_path '# no heading' is no heading of"),
        (gold("notes/water.md", "# Water > ## Boiling", "freezes"),
         "gold_supports[0].snippet 'freezes' does not stand there in 'notes/water.md'; choose one from its text"),
    ],
)  # fmt: skip
def test_a_gold_that_is_gone_gets_place_name_value_and_remedy(audited: Project, place: dict[str, Any], line: str):
    audited.cases([a_case("ok"), a_case("boil", "When does it boil?", gold_supports=[place])])
    result = audit(audited)
    assert result.ret == 1
    assert result.outlines[0].startswith("✘ evalcases/a.jsonl:2: case 'boil': ")
    assert line.replace("vault/notes/water.md", "notes/water.md") in result.outlines[0].replace("vault/notes", "notes")
    assert result.outlines[-1] == "1 of 2 cases cannot be won, 1 finding"


GONE = gold("notes/gone.md")


@pytest.mark.parametrize(
    ("fields", "is_unwinnable"),
    [
        ({"gold_supports": [GONE]}, True),
        ({"gold_supports": [gold(), GONE]}, False),
        ({"gold_supports": [gold(), GONE], "category": "multi_hop"}, True),
        ({"gold_supports": [gold(), GONE], "category": "synthesis"}, True),
        ({"gold_supports": [gold(), GONE], "required_support_groups": [[0], [1]]}, False),
        ({"gold_supports": [gold(), GONE], "required_support_groups": [[0, 1], [1]]}, True),
    ],
)
def test_a_case_cannot_be_won_where_too_little_of_its_golds_is_left(
    audited: Project, fields: dict[str, Any], is_unwinnable: bool
):
    audited.cases([a_case("boil", **fields)])
    content = json.loads(audit(audited, "--json").stdout.str())
    assert content["unwinnable"] == (["evalcases/a.jsonl::boil"] if is_unwinnable else [])
    assert next(finding["kind"] for finding in content["findings"]) == "lost_file"
    assert audit(audited).ret == is_unwinnable


def test_questions_and_categories_are_looked_at_by_themselves(audited: Project):
    audited.cases([
        a_case("boil"),
        a_case("twice", "What is the boiling point of water"),
        a_case("scoped", folders=["notes"]),
        a_case("hops", "Two things about water?", category="multi_hop"),
        a_case("any", "Three things, really?", category="multi_hop", gold_supports=[gold(), gold()],
               required_support_groups=[[0], [0, 1]]),
        a_case("told", "Does it boil at 100 degrees?", gold={"answer": "At 100 degrees"}),
        a_case("choice", "Is it warm or cold?", gold={"answer": "cold"}),
        a_case("yes", "Is it so, yes?", gold={"answer": "yes"}),
    ])  # fmt: skip
    assert findings(audited) == {
        "twice": ["near_duplicate"], "hops": ["arity"], "any": ["arity"], "told": ["given_away"]
    }  # fmt: skip


LOST = "At what heat does water start boiling?"


def test_a_gold_that_no_stored_run_retrieved_is_said_as_long_as_the_case_is_the_same(audited: Project):
    audited.cases([a_case("boil"), a_missed_case("lost", question=LOST), a_case("empty", "Who?")])
    audited.run()
    audited.run()
    assert findings(audited)["lost"] == ["lost_file", "never_retrieved"]
    assert "boil" not in findings(audited)
    result = audit(audited)
    assert lines_with(
        result, "gold_supports[0] 'notes/elsewhere.md' was retrieved in none of 2 records, though chunk 1 is"
    )
    audited.cases([a_case("boil"), a_missed_case("lost", question=LOST, difficulty="hard")])
    assert findings(audited)["lost"] == ["lost_file"]


def test_a_note_that_changed_since_it_was_labelled_is_said(audited: Project):
    digits = note_hash(audited.path / "vault/notes/water.md")
    audited.cases([a_case("boil", metadata={"note_hashes": {"notes/water.md": digits}})])
    assert findings(audited) == {}
    audited.write("vault/notes/water.md", WATER + "\nMore.\n")
    assert findings(audited) == {"boil": ["note_changed"]}


def test_the_index_of_the_demo_is_listed_and_its_own_cases_can_be_won(audited: Project):
    audited.configure('target = "demo"')
    place = {"rel_path": "catalogue/brands/laneige.md", "heading_path": "# Laneige > ## Products"}
    audited.cases([a_case("there", gold_supports=[place]), a_case("gone", "What else?", gold_supports=[GONE]),
                   {"id": "id", "query": "Which?", "relevant_ids": ["t01"]},
                   {"id": "no-id", "query": "Whose?", "relevant_ids": ["t99"]}])  # fmt: skip
    result = audited.rageval("cases", "audit", "--index")
    assert result.ret == 1
    assert lines_with(result, "case 'gone': gold_supports[0] 'notes/gone.md > # Water > ## Boiling' matches none of ")
    assert lines_with(result, "case 'no-id': gold id 't99' matches none of ")
    assert result.outlines[-1] == "2 of 4 cases cannot be won, 2 findings"


def test_a_target_that_lists_no_chunks_is_a_line(audited: Project):
    audited.cases([a_case("boil")])
    result = audited.rageval("cases", "audit", "--index")
    assert result.ret == 2
    assert lines_with(result, "--index: target bot:answer does not list its chunks")


def test_a_run_says_how_many_cases_cannot_be_won_where_notes_are_configured(audited: Project):
    audited.configure('target = "bot:answer"\nnotes = "vault"')
    audited.cases([a_case("boil"), a_missed_case("lost")])
    line = "1 of 2 cases cannot be won: the notes lack their golds; rageval cases audit says which and why"
    assert lines_with(audited.run(), line)
    for name in ("summary.md", "report.html"):
        assert line in (audited.runs[-1] / name).read_text("utf-8")
    audited.cases([a_case("boil")])
    assert not lines_with(audited.run(), "cannot be won")


def test_the_doctor_looks_at_the_golds_where_notes_are_configured(audited: Project):
    audited.cases([a_case("boil"), a_missed_case("lost")])
    assert not lines_with(audited.rageval("doctor"), "labels")
    audited.configure('target = "bot:answer"\nnotes = "vault"')
    result = audited.rageval("doctor")
    assert result.ret == 1
    assert lines_with(result, "1 of 2 cases cannot be won: the notes lack their golds; rageval cases audit says which")
    audited.cases([a_case("boil"), {"id": "rain", "question": "Will it rain?", "answerable": False}])
    assert lines_with(audited.rageval("doctor"), "the notes hold the golds of 1 case")


def test_notes_that_are_no_folder_are_said_before_anything_is_asked(audited: Project):
    audited.configure('target = "bot:answer"\nnotes = "nowhere"')
    audited.cases([a_case("boil")])
    result = audited.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(result, "nowhere is no folder; name the folder of the notes, or leave it out")


WORDS = st.lists(
    st.sampled_from(["what", "is", "the", "price", "of", "cream", "soap", "oil", "in", "2023", "2024"]), max_size=12
)


@given(st.lists(WORDS.map(" ".join), max_size=15))
def test_every_near_duplicate_is_found_and_nothing_else(questions: list[str]):
    sets = [shingles(question) for question in questions]
    alike = [
        later for later in range(len(sets)) if any(likeness(sets[later], earlier) >= 0.8 for earlier in sets[:later])
    ]
    assert [later for later, _ in near_duplicates(questions)] == alike


def test_thousands_of_questions_are_compared_without_comparing_each_with_each():
    chance = random.Random(7)
    questions = [
        f"What is the {chance.randrange(10**6)} of {chance.randrange(10**6)} in the shop?" for _ in range(5000)
    ]
    assert [*near_duplicates([*questions, questions[17]])] == [(5000, 17)]
