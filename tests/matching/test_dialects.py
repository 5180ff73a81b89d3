"""Systems name the same place in many ways: each is matched, and what is only a guess is flagged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_rageval.cases.note_folder import NoteFolder
from pytest_rageval.matching.dialects import FileNames, PlaceRules
from pytest_rageval.matching.places import match
from pytest_rageval.model import Anchor, Answer, Chunk, EvalCase, Gold, Matching, Reference
from pytest_rageval.targets.native_contract import answer_from_record

DIALECTS = json.loads(
    Path(__file__).parent.parent.joinpath("data/frozen-input/dialects/dialects.json").read_text(encoding="utf-8")
)
GOLD = Anchor("a.md", "# A > ## B")


def matched(wanted: Anchor | tuple[Anchor, ...], *places: tuple | dict, **rules) -> Matching:
    """Match golds with chunks at `(path, heading path, text)`, or as the system writes them."""
    written = [
        place if isinstance(place, dict) else dict(zip(("rel_path", "heading_path", "text"), place, strict=False))
        for place in places
    ]
    answer = answer_from_record({"retrieved_chunks": written}, "bot")
    supports = (wanted,) if isinstance(wanted, Anchor) else wanted
    return match(EvalCase("q1", "What?", gold=Gold(supports=supports)), answer, rules=PlaceRules(**rules))


def kinds(found: Matching) -> list[tuple[str, str | None]]:
    return [(each.kind, each.doubt) for each in found.loose]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect["name"])
def test_each_dialect_has_recall_1_and_only_guesses_are_flagged(dialect):
    place = {name: dialect[name] for name in ("rel_path", "heading_path") if name in dialect}
    found = matched(GOLD, {**place, "text": "The passage."})
    assert found.hits == ({0},)
    assert bool(found.doubts) is dialect.get("doubt", False)


@pytest.mark.parametrize(
    "written",
    ["a :: b", "A → B", "A»B", "# A / ## B", "A\nB", "A -> B", " A  |  B | C", "**A** / `B`", "a.md > A > B", "A/B",
     ["", "A", None, "B"], {"h1": "A", "h2": "B"}, [{"level": 1, "text": "A"}, {"level": 2, "text": "B"}], "Ａ › Ｂ",
     "Ａ＞Ｂ", '["A", "B"]', "['# A', None, '## B']", '{"Header 1": "A", "Header 2": "B"}', "A - B", "A\\B", "A: > B:",
     '"A" > "B"', "'A' > 'B'", "“A” / “B”", "«A» › «B»", '#"A" > ##"B"', "[A](#a) > [B](b.md)",
     "<h1>A</h1> > <h2>B</h2>", "A &gt; B", "A {#a} > B {#b}"],
)  # fmt: skip
def test_other_separators_levels_widths_and_cases_of_headings_match(written):
    found = matched(GOLD, {"rel_path": "a.md", "heading_path": written})
    assert found.hits == ({0},)
    assert not found.doubts


@pytest.mark.parametrize(
    "written", ["A / C", "X / A / B", "B / A", "A", "AB", "A & B", "B > C", '["A"]', "[A, B", "2024 A > B"]
)
def test_other_headings_do_not_match(written):
    assert matched(GOLD, ("a.md", written)).hits == (frozenset(),)


@pytest.mark.parametrize(
    ("gold", "written", "doubts"),
    [
        ("# A > ## B", "1 A > 1.1. B", {"spelling": 1}),
        ("# 1. A > ## 1.1 B", "A > B", {"spelling": 1}),
        ("# 1. A > ## 1.1 B", "1 A > 1.1. B", {}),
        ("# A > ## 1. B", "A > 2. B", None),
        ("# Step 1 > ## B", "Step 2 > B", None),
    ],
)
def test_a_numbered_heading_is_one_without_its_number_in_doubt_and_never_one_of_another_number(gold, written, doubts):
    found = matched(Anchor("a.md", gold), ("a.md", written))
    assert (found.hits != (frozenset(),)) is (doubts is not None)
    assert found.doubts == (doubts or {})


@pytest.mark.parametrize(
    ("gold", "written", "doubt"),
    [
        ("# A section > ## B section", "a-section/b-section", "spelling"),
        ("# A section > ## B section", "#a-section/b_section", "spelling"),
        ("# A section > ## B section", "/a-section/b-section/c/", "spelling"),
        ("# A section > ## B section", "a-section > b-section", "spelling"),
        ("# A section > ## B section", "b-section", "last_heading"),
        ("# A section > ## B section", "c-section/b-section", None),
        ("# A section > ## B section", "a-section", None),
        ("# Use of C++ > ## C++", "use-of-c/c", None),
        ("# Use of C++ > ## C++", "use-of-c/c++", "spelling"),
        ("# Salt, pepper > ## Oil, vinegar", "Salt, pepper, Oil, vinegar", "spelling"),
        ("# Salt, pepper > ## Oil, vinegar", '"Salt, pepper", "Oil, vinegar", "Water"', "spelling"),
        ("# Salt, pepper > ## Oil, vinegar", "Salt, pepper; Oil, vinegar", "spelling"),
        ("# Salt, pepper > ## Oil, vinegar", "Salt, pepper, Oil, vinegars", None),
        ("# Salt", "Salt, pepper", None),
        ("# Salt, pepper > ## Oil, vinegar", "Salt, pepper", None),
    ],
)
def test_slugs_and_lists_with_commas_name_headings_in_doubt(gold, written, doubt):
    found = matched(Anchor("a.md", gold), ("a.md", written))
    assert [*found.doubts] == ([doubt] if doubt else [])
    assert found.hits == ({0} if doubt else frozenset(),)
    strict = matched(Anchor("a.md", gold), ("a.md", written), is_strict=True)
    assert strict.hits == (frozenset(),)


@pytest.mark.parametrize(
    "place",
    [("a.md", "a: A > B"), ("a.md", "a.md: A > B"), ("a.md", "a.A > B"), ("a: A > B",), ("a.md: A / B",),
     ("x/a.md.A > B",), ("/srv/x/a.md:A > B", ""), ("a.A > B",)],
)  # fmt: skip
def test_file_and_heading_in_one_name_the_heading_in_doubt(place):
    found = matched(Anchor("x/a.md", "# A > ## B"), place)
    assert found.hits == ({0},)
    assert set(found.doubts) <= {"spelling", "folder"}
    assert found.doubts
    assert matched(Anchor("x/a.md", "# A > ## B"), place, is_strict=True).hits == (frozenset(),)


def test_file_and_heading_in_one_need_a_left_part_that_is_the_document_and_a_whole_that_is_none(tmp_path):
    nothing: tuple[frozenset[int], ...] = (frozenset(),)
    for place in (("b: A > B",), ("ba.A > B",), ("a: A > C",), ("a.md", "b: A > B"), ("a.pdf",), ("a. A > B", "C")):
        assert matched(GOLD, place).hits == nothing
    assert matched(Anchor("a.md"), ("a.b",)).hits == nothing
    named = (Anchor("a.md", "# b"), Anchor("a.b.md", "# C"))
    assert matched(named, ("a.b",), ("z.md", "Z")).hits == (frozenset(), frozenset())
    (tmp_path / "a.md").write_text("# A\n## B\nText.", encoding="utf-8")
    assert matched(GOLD, ("a.A > B",), notes=NoteFolder(tmp_path)).hits == ({0},)
    assert kinds(matched(GOLD, ("a.md: B",))) == [("last_heading", "last_heading")]


@pytest.mark.parametrize("written", ["Price (20) {#p}", "# Price (20) ##", "Price (20) {: #p .wide}", "Price – (20)"])
def test_attributes_and_dashes_of_headings_do_not_count(written, tmp_path):
    gold = Anchor("a.md", "# Price - (20)" if "–" in written else "# Price (20)")
    assert kinds(matched(gold, ("a.md", written))) == [("normalised", None)]
    (tmp_path / "a.md").write_text(f"# {written}\nHers.\n# Other\nNot.", "utf-8")
    silent = matched(gold, ("a.md", None, "Hers."), ("a.md", None, "Not."), notes=NoteFolder(tmp_path))
    assert silent.hits == ({0}, frozenset())


def test_snippets_match_whatever_marks_width_and_dashes_the_text_has():
    for snippet, text in [("are 3 days", "They are **3 days**."), ("期限は3日", "期限は３日です"), ("1-2", "1−2")]:
        assert kinds(matched(Anchor("a.md", "# A", (snippet,)), ("a.md", "# A", text))) == [("normalised", None)]
    assert matched(Anchor("a.md", "# A", ("10²",)), ("a.md", "# A", "102")).hits == (frozenset(),)


def test_a_fragment_that_is_the_slug_of_a_heading_names_it():
    gold = Anchor("a.md", "# A > ## Data set (v2)")
    found = matched(gold, ("a.md#intro",), ("https://kb.example/a.md#data-set-v2",))
    assert found.hits == (frozenset(), {0})
    assert kinds(found) == [("last_heading", "last_heading")]


def test_a_heading_that_holds_a_separator_matches_itself_and_no_other():
    one, path = Anchor("a.md", "# Input / Output"), Anchor("a.md", "# Input > ## Output")
    assert matched(path, ("a.md", "# Input / Output")).hits == (frozenset(),)
    assert matched(path, {"rel_path": "a.md", "heading_path": ["Input / Output"]}).hits == (frozenset(),)
    assert matched((one, path), ("a.md", "Input / Output")).hits == ({0},)
    assert matched(path, ("a.md", "Input / Output"), ("b.md", "A > B")).hits == (frozenset(), frozenset())
    below = Anchor("a.md", "# Ports > ## Input / Output > ### Pins")
    assert matched(below, ("a.md", "Ports / Input / Output / Pins")).hits == ({0},)
    assert kinds(matched(Anchor("a.md", "# Ports > ## Input / Output"), ("a.md", "Input / Output"))) == [
        ("last_heading", "last_heading")
    ]


def test_notes_know_a_heading_that_holds_a_separator(tmp_path):
    (tmp_path / "a.md").write_text("# Input / Output\nOne.\n\n# Input\n## Output\nTwo.\n", encoding="utf-8")
    path = Anchor("a.md", "# Input > ## Output")
    assert matched(path, ("a.md", "Input / Output")).hits == ({0},)
    assert matched(path, ("a.md", "Input / Output"), notes=NoteFolder(tmp_path)).hits == (frozenset(),)


def test_one_chunk_without_a_heading_among_others_is_text_before_the_first_one():
    found = matched(GOLD, ("a.md", None), ("b.md", "Z"))
    assert found.hits == (frozenset(), frozenset())


def test_the_surest_kind_of_match_wins():
    found = matched(GOLD, ("a.md", "B"), ("a.md", "A / B"), ("a.md", "## b"))
    assert found.hits == (frozenset(), {0}, frozenset())
    assert kinds(found) == [("normalised", None)]
    assert matched(GOLD, ("a.md", "A / B"), ("a.md", "# A > ## B")).loose == ()


def test_without_headings_snippets_decide_and_leave_no_doubt():
    gold = Anchor("a.md", "# A > ## B", ("the passage",))
    found = matched(gold, ("a.md", None, "Another."), ("a.md", None, "The  passage, whole."))
    assert found.hits == (frozenset(), {0})
    assert kinds(found) == [("document", None)]


def test_without_headings_the_notes_decide_and_leave_no_doubt(tmp_path):
    (tmp_path / "a.md").write_text("# A\nIntroduction.\n## B\nThe passage.\nIts end.\n## C\nThe other.\n", "utf-8")
    found = matched(GOLD, ("a.md", None, "The other."), ("a.md", "", "The passage."), notes=NoteFolder(tmp_path))
    assert found.hits == (frozenset(), {0})
    assert kinds(found) == [("document", None)]


def test_without_headings_texts_and_notes_every_chunk_of_the_document_matches_in_doubt():
    found = matched(GOLD, ("a.md",), ("b.md",), ("a.md",))
    assert found.hits == ({0}, frozenset(), {0})
    assert found.doubts == {"document": 1}
    assert found.flags == ("matched by document: chunk 1, chunk 3",)


def test_strict_places_accepts_exact_and_normalised_matches_only():
    assert matched(GOLD, ("./a.md", "A / B"), is_strict=True).hits == ({0},)
    assert matched(GOLD, ("a.md", "B"), is_strict=True).hits == (frozenset(),)
    assert matched(GOLD, ("a.md", None), is_strict=True).hits == (frozenset(),)


@pytest.mark.parametrize(
    "written",
    ["/x y/a.md", "x%20y/a.md", "file:///srv/x%20y/a.md", "https://kb.example/x%20y/a.md?raw=1#b", "x y\\a.md",
     "C:\\kb\\x y\\a.md", "x y/a", "x y/a.md#b", "../x y/a.md", "https://kb.example/x%20y/a/", "s3://bucket/x y/a.md",
     "https://kb.example/x y/a.html", "x y/a.md:12-20", '"x y/a.md"', "<x y/a.md>"],
)  # fmt: skip
def test_other_spellings_of_a_path_match_without_doubt(written):
    found = matched(Anchor("x y/a.md"), (written,))
    assert found.hits == ({0},)
    assert not found.doubts


@pytest.mark.parametrize(
    "written", ["xx y/a.md", "z/a.md", "https://kb.example/y/a.md", "x y/aa.md", "x y/a.pdf", "x y/a.md.bak", "md"]
)
def test_other_paths_do_not_match(written):
    assert matched(Anchor("x y/a.md"), (written,)).hits == (frozenset(),)


@pytest.mark.parametrize(("gold", "written"), [("a.md", "kb/notes/a.md"), ("kb/notes/a.md", "a.md")])
def test_folders_that_nothing_explains_are_a_doubt(gold, written):
    assert matched(Anchor(gold), (written,)).doubts == {"folder": 1}
    assert not matched(Anchor(gold), (written,), prefixes=(("srv", "kb", "notes"),)).doubts


@pytest.mark.parametrize("written", ["x y/A.md", "X Y/a.md", "x y/a.html", "x y/ａ.htm"])
def test_another_case_or_the_suffix_of_a_web_page_is_a_doubt_unless_both_files_are_known(written):
    gold = Anchor("x y/a.md")
    assert matched(gold, (written,)).doubts == {"spelling": 1}
    assert matched(gold, (written,), is_strict=True).hits == (frozenset(),)
    assert matched((gold, Anchor(written)), (written,)).hits == (frozenset({1}),)


def test_a_name_of_several_golds_of_the_run_or_notes_matches_exactly_or_not_at_all(tmp_path):
    golds = (Anchor("x/README.md"), Anchor("y/README.md"))
    found = matched(golds, ("README.md",), ("x/README.md",))
    assert found.hits == (frozenset(), {0})
    assert found.flags[0].endswith("several files have the name: README.md (x/README.md and y/README.md)")
    assert matched(golds, ("/srv/y/README.md",)).hits == (frozenset(),)
    assert matched(golds, ("/srv/y/README.md",), prefixes=(("srv",),)).hits == ({1},)
    assert matched(golds, (".\\y\\README.md",)).hits == ({1},)
    assert matched(Anchor("README.md"), ("p/README.md",), ("q/README.md",)).hits == (frozenset(), frozenset())
    for folder in ("x", "y"):
        tmp_path.joinpath(folder).mkdir()
        tmp_path.joinpath(folder, "a.md").write_text("# A", encoding="utf-8")
    assert matched(Anchor("x/a.md"), ("a.md",)).hits == ({0},)
    assert matched(Anchor("x/a.md"), ("a.md",), notes=NoteFolder(tmp_path)).hits == (frozenset(),)
    assert matched((Anchor("a.md"), Anchor("a.txt")), ("a",)).hits == (frozenset(),)
    others = FileNames(["q/b.md", "p/b.md", "c.md"])
    assert matched(Anchor("p/b.md"), ("b.md",), golds=others).hits == (frozenset(),)
    assert others.ambiguous == ["p/b.md", "q/b.md"]


def test_references_and_irrelevant_places_are_compared_likewise_but_never_guessed():
    case = EvalCase("q1", "What?", gold=Gold(supports=(GOLD,), irrelevant_supports=(Anchor("b.md", "# Z"),)))
    chunks = (Chunk(rel_path="/kb/b.md", heading_path="z"), Chunk(rel_path="/kb/b.md", heading_path="Y / Z"))
    found = match(case, Answer(chunks=chunks, references=(Reference(rel_path="/kb/a.md", heading_path="a / b"),)))
    assert found.cited == ({0},)
    assert found.irrelevant == (True, False)
    plain = match(case, Answer(chunks=(Chunk(rel_path="b.md"),), references=(Reference(rel_path="a.md"),)))
    assert plain.irrelevant == (False,)


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ({"extra": {"page_label": "12"}}, ("normalised", None)),
        ({"extra": {"metadata": {"page_number": 12}}}, ("normalised", None)),
        ({"rel_path": "docs/manual.pdf#page=12"}, ("normalised", "folder")),
        ({"heading_path": "Seite 12"}, ("normalised", None)),
        ({"extra": {"page": 11}}, ("document", "document")),
        ({"heading_path": "Safety"}, ("document", "document")),
        ({}, ("document", "document")),
        ({"extra": {"page_label": "13"}}, None),
        ({"extra": {"page": 14}}, None),
        ({"heading_path": "p. 2"}, None),
    ],
)
def test_a_gold_on_a_page_matches_the_reported_page_or_its_document_in_doubt(place, kind):
    chunk = Chunk(**{"rel_path": "manual.pdf", "text": "The pressure is 9 bar."} | place)
    case = EvalCase("a", "Which pressure?", gold=Gold(supports=(Anchor("manual.pdf", "page 12"),)))
    found = match(case, Answer(text="9 bar", chunks=(chunk,)))
    assert kinds(found) == ([kind] if kind else [])
