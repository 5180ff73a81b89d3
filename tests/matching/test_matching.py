"""Does this chunk match that gold, by place, quotation or id? And which documents does an answer rest on?"""

from __future__ import annotations

import unicodedata

import pytest

from pytest_rageval.matching.passages import citations, contexts, documents
from pytest_rageval.matching.places import in_rank_order, match, observe
from pytest_rageval.model import Anchor, Answer, Chunk, EvalCase, Gold, Reference

NO_TEXT = "snippet not looked for, no text was reported"
CUT = "snippet not found, but the text was cut"


def matched(gold: Gold, *chunks: Chunk, references: tuple[Reference, ...] | None = None, by="anchors"):
    return match(EvalCase("q1", "What?", gold=gold), Answer(chunks=chunks, references=references), by)


def hits(gold: Gold, *chunks: Chunk) -> list[set[int]]:
    return [set(golds) for golds in matched(gold, *chunks).hits or ()]


def place(rel_path: str = "notes/go.md", heading_path: str = "", *snippets: str) -> Gold:
    return Gold(supports=(Anchor(rel_path, heading_path, snippets),))


def chunk_at(rel_path: str | None, heading_path: str | None = "", text: str | None = None, **more) -> Chunk:
    return Chunk(rel_path=rel_path, heading_path=heading_path, text=text, **more)


@pytest.mark.parametrize(("gold", "came"), [("# Tips > ## Sorting", "# Tips"), ("# Set", "# Setup"), ("# C", "# C#")])
def test_a_chunk_under_another_heading_does_not_match(gold: str, came: str):
    assert hits(place("notes/go.md", gold), chunk_at("notes/go.md", came)) == [set()]


@pytest.mark.parametrize(
    "came",
    ["Tips > Sorting > Its end", "#  Tips>##Sorting ", " > # Tips > > ## Sorting", "#Tips\t> Sorting"],
)
def test_chunks_below_and_markers_white_space_and_empty_parts_of_headings_match(came):
    assert hits(place("notes/go.md", "# Tips > ## Sorting"), chunk_at("notes/go.md", came)) == [{0}]


@pytest.mark.parametrize("came", ["# Any > ## Heading", "", None])
def test_a_gold_without_a_heading_matches_every_heading_of_its_file(came):
    assert hits(place("notes/go.md"), chunk_at("notes/go.md", came)) == [{0}]


def test_a_chunk_without_a_heading_does_not_match_a_gold_that_names_one():
    others = chunk_at("notes/go.md", "# Sorting")
    assert hits(place("notes/go.md", "# Tips"), chunk_at("notes/go.md", None), others) == [set(), set()]


def test_paths_are_equal_after_composition_and_slashes():
    decomposed = unicodedata.normalize("NFD", "노트\\시장.md")
    assert hits(place("노트/시장.md"), chunk_at(decomposed)) == [{0}]


def test_chunks_that_name_no_place_at_all_are_not_looked_at_for_gold():
    assert matched(place("notes/go.md"), chunk_at(None, text="of it"), chunk_at(None)).hits is None
    assert hits(place("notes/go.md"), chunk_at(None), chunk_at("notes/go.md")) == [set(), {0}]
    assert matched(Gold(), chunk_at(None, text="of it")).hits == (frozenset(),)


def test_a_chunk_may_match_several_golds_and_a_gold_several_chunks():
    gold = Gold(supports=(Anchor("n.md"), Anchor("n.md", "# A"), Anchor("m.md")))
    assert hits(gold, chunk_at("n.md", "# A"), chunk_at("n.md", "# B"), chunk_at("x.md")) == [{0, 1}, {0}, set()]


@pytest.mark.parametrize("text", ["… the  OFF-by-one\nerror …", "or this one", "something else"])
def test_one_snippet_must_be_quoted_whatever_its_case_and_spacing(text):
    found = matched(place("n.md", "", "the off-by-one error", "this one"), chunk_at("n.md", text=text))
    assert found.hits == (set() if text == "something else" else {0},)
    assert found.flags == ()


def test_blank_snippets_set_no_condition():
    assert hits(place("n.md", "", "  "), chunk_at("n.md", text="anything")) == [{0}]


def test_a_snippet_that_may_lie_beyond_a_cut_counts_and_is_flagged():
    gold = place("n.md", "# A", "off-by-one")
    cut = chunk_at("n.md", "# A", "The data set has an o", text_truncated=True)
    elsewhere = chunk_at("n.md", "# B", "The data set has an o", text_truncated=True)
    found = matched(gold, cut, elsewhere)
    assert found.hits == ({0}, set())
    assert found.flags == (f"{CUT}: chunk 1",)


def test_a_snippet_is_waived_where_no_text_was_reported_and_that_is_flagged():
    found = matched(place("n.md", "", "off-by-one"), chunk_at("x.md"), chunk_at("n.md"), chunk_at("n.md"))
    assert found.hits == (set(), {0}, {0})
    assert found.flags == (f"{NO_TEXT}: chunk 2, chunk 3",)


def test_flags_stay_short_however_many_chunks_they_are_about():
    found = matched(place("n.md", "", "off-by-one"), *[chunk_at("n.md")] * 500)
    assert found.flags[0].endswith("chunk 10 and 490 more")


def test_ids_match_the_chunk_then_its_document():
    gold = Gold(chunk_ids=("t01", "c7"))
    came = (Chunk("c7"), Chunk("c8", doc_id="t01"), Chunk("c7", doc_id="t01"), Chunk("t01#2"), Chunk())
    assert hits(gold, *came) == [{1}, {0}, {0, 1}, set(), set()]


@pytest.mark.parametrize(
    ("came", "does"), [("t01", True), ("t01#2", True), ("t01-a", True), ("t010", False), ("t0", False)]
)
def test_a_prefix_ends_where_the_id_ends_or_goes_on_with_a_mark(came, does):
    gold = Gold(chunk_ids=("t01",), ids_are_prefixes=True)
    assert hits(gold, Chunk(came)) == [{0} if does else set()]
    assert hits(gold, Chunk("c1", doc_id=came)) == [{0} if does else set()]


def test_a_prefix_may_hold_marks_itself():
    gold = Gold(chunk_ids=("t-01", "t"), ids_are_prefixes=True)
    assert hits(gold, Chunk("t-01#3"), Chunk("t-02")) == [{0, 1}, {1}]


def test_a_grade_above_zero_is_a_gold_and_an_id_counts_once():
    gold = Gold(chunk_ids=("a", "a"), relevance={"a": 2, "b": 1, "c": 0})
    found = matched(gold, Chunk("a"), Chunk("b"), Chunk("c"))
    assert found.golds == 2
    assert found.hits == ({0}, {1}, set())


def test_golds_are_never_mixed():
    gold = Gold(supports=(Anchor("n.md"),), chunk_ids=("c1", "c2"))
    chunk = Chunk("c1", rel_path="x.md")
    by_anchors, by_ids = matched(gold, chunk), matched(gold, chunk, by="ids")
    assert (by_anchors.kind, by_anchors.golds, by_anchors.hits) == ("anchors", 1, (set(),))
    assert (by_ids.kind, by_ids.golds, by_ids.hits) == ("ids", 2, ({0},))


def test_the_other_kind_of_gold_serves_where_the_preferred_one_is_missing():
    assert matched(Gold(supports=(), chunk_ids=("c1",)), Chunk("c1")).kind == "ids"
    assert matched(Gold(supports=(Anchor("n.md"),)), chunk_at("n.md"), by="ids").kind == "anchors"


def test_without_gold_nothing_is_hit():
    found = matched(Gold(), Chunk("c1"))
    assert (found.kind, found.golds, found.hits) == ("none", 0, (set(),))


def test_what_is_not_reported_is_none_and_what_is_empty_is_empty():
    case = EvalCase("q1", "What?", gold=Gold(chunk_ids=("a",), irrelevant_ids=("b",)))
    absent, empty = match(case, Answer()), match(case, Answer(chunks=(), references=()))
    assert (absent.hits, absent.irrelevant, absent.cited) == (None, None, None)
    assert (empty.hits, empty.irrelevant, empty.cited) == ((), (), ())


def test_irrelevant_golds_are_told_by_place_and_by_id():
    gold = Gold(irrelevant_supports=(Anchor("old.md", "# A"),), irrelevant_ids=("t09",), ids_are_prefixes=True)
    came = (Chunk("c1", rel_path="old.md", heading_path="# A > ## B"), Chunk("t09#1"), Chunk("c2", rel_path="old.md"))
    assert matched(gold, *came).irrelevant == (True, True, False)
    assert matched(Gold(chunk_ids=("a",)), Chunk("a")).irrelevant is None


def test_an_irrelevant_snippet_that_cannot_be_looked_for_is_not_held_against_the_system():
    found = matched(Gold(irrelevant_supports=(Anchor("old.md", "", ("wrong",)),)), chunk_at("old.md"))
    assert found.irrelevant == (False,)
    assert found.flags == (f"irrelevant gold: {NO_TEXT}: chunk 1",)


def cited(gold: Gold, reference: Reference, *chunks: Chunk):
    found = matched(gold, *chunks, references=(reference,))
    [golds] = found.cited
    return set(golds), found.flags


def test_a_reference_borrows_text_and_place_of_the_chunk_with_its_id():
    gold = place("n.md", "", "off-by-one")
    chunks = (Chunk("c1", rel_path="n.md", text="an off-by-one error"), Chunk("c2", rel_path="n.md", text="no"))
    assert cited(gold, Reference("c1"), *chunks) == ({0}, ())
    assert cited(gold, Reference("c2", rel_path="n.md"), *chunks) == (set(), ())


def test_without_a_known_id_a_reference_borrows_from_the_chunks_at_its_place():
    gold = place("n.md", "# A", "off-by-one")
    chunks = (chunk_at("n.md", "# A", "no"), chunk_at("n.md", "# A", "an off-by-one error"))
    assert cited(gold, Reference(rel_path="n.md", heading_path="A"), *chunks) == ({0}, ())


def test_a_reference_with_no_text_to_borrow_waives_the_snippet_and_that_is_flagged():
    gold = place("n.md", "", "off-by-one")
    assert cited(gold, Reference(rel_path="n.md")) == ({0}, (f"{NO_TEXT}: reference 1",))


def test_a_references_own_text_is_looked_at_too():
    gold = place("n.md", "", "off-by-one")
    assert cited(gold, Reference(rel_path="n.md", text="an off-by-one error")) == ({0}, ())
    assert cited(gold, Reference(rel_path="n.md", text="something else")) == (set(), ())


def test_a_reference_by_place_is_known_by_the_id_of_its_chunk():
    gold = Gold(chunk_ids=("c1",))
    assert cited(gold, Reference(rel_path="n.md", heading_path="# A"), Chunk("c1", None, "n.md", "# A"))[0] == {0}
    assert cited(gold, Reference("c1"))[0] == {0}
    assert cited(gold, Reference("c9", doc_id="c1"))[0] == {0}
    assert cited(gold, Reference("c9"), Chunk(text="of no place"))[0] == set()


def test_chunks_are_put_in_the_order_of_their_ranks():
    answer = Answer(chunks=(Chunk("b", rank=2), Chunk("c", rank=3), Chunk("a", rank=1)))
    obs = observe(EvalCase("q1", "What?", gold=Gold(chunk_ids=("a",))), answer)
    assert [chunk.chunk_id for chunk in obs.answer.chunks or ()] == ["a", "b", "c"]
    assert obs.hits == ({0}, set(), set())


@pytest.mark.parametrize(
    ("ranks", "ids"),
    [((2, 1, None), "abc"), ((1, 0, 0), "bca"), ((7, -2, 7), "bac")],
    ids=["one is missing", "equal ones", "gaps"],
)
def test_ranks_are_only_an_order_and_the_list_counts_where_one_is_missing(ranks: tuple[int | None, ...], ids: str):
    chunks = tuple(Chunk(name, rank=rank) for name, rank in zip("abc", ranks, strict=True))
    assert "".join(chunk.chunk_id or "" for chunk in in_rank_order(chunks)) == ids


def test_a_chunk_that_came_twice_stands_twice():
    assert hits(Gold(chunk_ids=("a", "b")), Chunk("a"), Chunk("a")) == [{0}, {0}]
    assert matched(Gold(chunk_ids=("a", "b")), Chunk("a"), Chunk("a"), Chunk("b")).fresh == ((1, 1), (3, 2))


def a_case(**fields) -> EvalCase:
    return EvalCase("q1", "What?", **fields)


def test_passages_come_in_the_order_of_their_ranks():
    chunks = (Chunk("c2", text="second", rank=2), Chunk("c1", text="first", rank=1))
    assert contexts(a_case(), Answer("So.", chunks=chunks), 1) == [("c1", "first")]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer("So.", chunks=(Chunk("a#1", rel_path="a.md"), Chunk("a#2", rel_path="a.md"))), {"a.md"}),
        (Answer("So.", chunks=(Chunk("a#1", doc_id="d1"), Chunk("a#2", doc_id="d2"))), {"d1", "d2"}),
        (Answer("So.", chunks=(Chunk("a#1"), Chunk("a#2"), Chunk("b#1"))), {"a", "b"}),
        (Answer("So.", chunks=(Chunk(text="nameless"),)), set()),
        (Answer("So.", references=(Reference(rel_path="a.md"), Reference(rel_path="b.md"))), {"a.md", "b.md"}),
        (Answer("So.", references=(), chunks=(Chunk("a#1"),)), {"a"}),
        (Answer("So."), set()),
    ],
)
def test_a_document_is_known_by_path_id_or_the_beginning_of_its_chunks_ids(answer, expected):
    assert documents(a_case(), answer, 5) == expected


def test_a_reference_by_chunk_id_is_of_the_document_of_that_chunk():
    chunks = (Chunk("x1", rel_path="a.md"), Chunk("x2", rel_path="a.md"), Chunk("x3", rel_path="b.md"))
    answer = Answer("So.", chunks=chunks, references=(Reference("x1"), Reference("x2")))
    assert documents(a_case(), answer, 5) == {"a.md"}


def test_contexts_of_the_case_are_a_document_each():
    assert documents(a_case(contexts=("one", "two", "two")), Answer("So."), 5) == {"one", "two"}


def test_an_answer_without_references_has_no_citations():
    assert citations(Answer("So.")) == citations(Answer("So.", references=())) == []
