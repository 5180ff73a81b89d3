"""A labelling session without a screen: pools, marks, undo over all cases, saving, second opinions, drafts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import wait_until

from pytest_rageval.cases import load_file
from pytest_rageval.cases.discovery import find_case_files
from pytest_rageval.cases.marks import Marks
from pytest_rageval.errors import CaseError, TargetError
from pytest_rageval.io.masking import Mask
from pytest_rageval.model import Anchor, Answer, AskRequest, Chunk, EvalCase
from pytest_rageval.workbench.label.asking import PoolAsking, PoolSource
from pytest_rageval.workbench.label.draft_store import DraftStore
from pytest_rageval.workbench.label.label_agreement import THE_FILE, agreements, disputed
from pytest_rageval.workbench.label.label_session import LabelSession
from pytest_rageval.workbench.label.label_store import (
    CaseFileStore,
    OpinionStore,
    opinion_file,
    opinion_files,
    opinions,
)
from pytest_rageval.workbench.label.notes_search import NotesSearch
from pytest_rageval.workbench.label.pools import Pool, Retrieval, merged, path_prefix


def a_chunk(name: str, text: str | None = None, heading: str = "", **fields: Any) -> Chunk:
    return Chunk(name, None, f"notes/{name}.md", heading, text or f"text of {name}", **fields)


class Bot:
    """Gives the chunks that it has for a question, and counts how often it is asked."""

    def __init__(self, chunks: Mapping[str, tuple[Chunk, ...]] | None = None, name: str = "bot") -> None:
        self.name = name
        self.chunks = chunks
        self.requests: list[AskRequest] = []
        self.is_closed = False

    async def ask(self, request: AskRequest) -> Answer:
        self.requests.append(request)
        if self.chunks is None and "fail" in request.question:
            raise TargetError("connect", "nobody there, key=SECRETSECRET")
        chunks = self.chunks if self.chunks is not None else {request.question: tuple(map(a_chunk, "abc"))}
        return Answer("x", chunks=chunks.get(request.question, ()))

    async def aclose(self) -> None:
        self.is_closed = True


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    for source in desk.sources:
        source.close()


class Desk:
    """A folder in which cases are labelled."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path / "cases.jsonl"
        self.sources: list[PoolSource] = []

    def write(self, *cases: Mapping[str, Any], name: str = "cases.jsonl") -> Path:
        file = self.path / name
        file.write_text("".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases), encoding="utf-8")
        return file

    def source(self, *bots: Bot, search: NotesSearch | None = None) -> PoolSource:
        source = PoolSource(bots or (Bot(),), search, PoolAsking(5, {"p": 1}, Mask(["SECRETSECRET"])))
        self.sources.append(source)
        return source

    def session(
        self, *bots: Bot, search: NotesSearch | None = None, blind: str | None = None, file: Path | None = None
    ) -> LabelSession:
        path = file or self.file
        cases = load_file(path, self.path).cases
        store: Any
        if path.name.endswith(".drafts.jsonl"):
            store = DraftStore(path, self.path)
        elif blind:
            store = OpinionStore(opinion_file(path, blind), self.path)
        else:
            store = CaseFileStore(path, search.folder if search else None)
        session = LabelSession(cases, store, self.source(*bots, search=search), is_blind=bool(blind))
        settle(session)
        return session

    def cases(self) -> dict[str, EvalCase]:
        loaded = load_file(self.file, self.path)
        assert not loaded.problems
        return {case.id: case for case in loaded.cases}


def settle(session: LabelSession) -> LabelSession:
    if (future := session.waits_for) is not None:
        future.result(60)
    return session


def row_of(session: LabelSession, name: str) -> int:
    paths = [candidate.chunk.rel_path for candidate in session.pool.candidates]
    return paths.index(f"notes/{name}.md")


def point(session: LabelSession, name: str) -> LabelSession:
    settle(session).row = row_of(session, name)
    return session


def a_bare(id: str, question: str = "q", **fields: Any) -> dict[str, Any]:
    return {"id": id, "question": question, **fields}


# ── pools ─────────────────────────────────────────────────────────────────────────────────────────────────────

CASE = EvalCase("c", "q")


def test_a_pool_merges_equal_chunks_and_says_who_had_them_where():
    first = Retrieval("one", (a_chunk("a", score_final=0.5), a_chunk("b")))
    second = Retrieval("two", (a_chunk("b"), a_chunk("c")))
    pool = merged(CASE, [first, second])
    ranks = {c.chunk.chunk_id: [(r.system, r.rank, r.score) for r in c.ranks] for c in pool.candidates}
    assert ranks == {"a": [("one", 1, 0.5)], "b": [("one", 2, None), ("two", 1, None)], "c": [("two", 2, None)]}


@given(st.permutations([a_chunk(name) for name in "abcdefgh"]))
def test_the_order_follows_from_the_case_and_not_from_the_systems(chunks: list[Chunk]):
    orders = {
        tuple(c.chunk.chunk_id for c in merged(CASE, [Retrieval("one", tuple(some))]).candidates)
        for some in (chunks, [a_chunk(name) for name in "abcdefgh"])
    }
    assert len(orders) == 1


def test_a_section_that_only_the_search_found_is_marked_and_one_that_a_system_had_is_not():
    search = Retrieval("search", (a_chunk("a", "another cut of it"), a_chunk("z")), is_search=True)
    pool = merged(CASE, [Retrieval("one", (a_chunk("a"),)), search])
    flags = {c.chunk.rel_path: (c.is_retrieved, c.is_searched) for c in pool.candidates}
    assert flags == {"notes/a.md": (True, True), "notes/z.md": (False, True)}


def test_a_system_that_fails_is_said_and_the_others_count(folder: Desk):
    folder.write(a_bare("a", "fail"))
    pool = folder.session(Bot(), Bot({"fail": (a_chunk("x"),)}, "other")).pool
    assert pool.problems[0].startswith("bot: connect: nobody there, key=")
    assert "SECRET" not in pool.problems[0]
    assert [candidate.chunk.chunk_id for candidate in pool.candidates] == ["x"]


def test_cases_are_asked_with_k_20_their_scope_and_the_parameters(folder: Desk):
    folder.write(a_bare("a", vaults=["v"], folders=["f"]))
    bot = Bot()
    folder.session(bot)
    request = bot.requests[0]
    assert (request.k, request.vaults, request.folders, request.params) == (20, ("v",), ("f",), {"p": 1})
    assert request.case_key == "cases.jsonl::a"


def test_the_next_two_are_asked_ahead_and_each_case_once(folder: Desk):
    folder.write(*(a_bare(f"c{at}", f"q{at}") for at in range(6)))
    bot = Bot()
    session = folder.session(bot)
    wait_until(lambda: len(bot.requests) == 3, "the next two are asked ahead")
    assert [request.question for request in bot.requests] == ["q0", "q1", "q2"]
    session.go(1)
    session.go(-1)
    settle(session)
    time.sleep(0.05)
    assert [request.question for request in bot.requests] == ["q0", "q1", "q2", "q3"]


def test_a_gold_that_nobody_retrieved_is_a_row_and_is_not_lost(folder: Desk):
    folder.write(a_bare("a", gold_supports=[{"rel_path": "notes/lost.md", "date": "2024"}]))
    session = folder.session()
    assert [c.chunk.rel_path for c in session.pool.candidates if c.is_listed] == ["notes/lost.md"]
    point(session, "a").toggle_gold()
    assert session.save()
    assert folder.cases()["a"].gold.supports == (Anchor("notes/lost.md", "", (), "2024"), Anchor("notes/a.md"))


def test_the_search_finds_sections_by_words_and_names_them_as_the_systems_do(tmp_path: Path):
    notes = tmp_path / "notes"
    (notes / ".hidden").mkdir(parents=True)
    (notes / ".hidden" / "x.md").write_text("price")
    (notes / "price.md").write_text(
        "---\ntags: x\n---\n# Prices\nintro\n\nCreams\n------\nThe Jeju cream costs 32,000.\n```\n# no heading\n```\n"
    )
    (notes / "other.md").write_text("# Other\nNothing here.\n")
    search = NotesSearch(notes)
    (section,) = search.find("What does the Jeju cream cost?", 5)
    assert (section.rel_path, section.heading_path) == ("price.md", "# Prices > ## Creams")
    assert (section.start_line, section.end_line) == (9, 12)
    assert "# no heading" in (section.text or "")


def test_notes_are_named_as_the_systems_name_them_also_where_a_system_gives_nothing(folder: Desk):
    notes = folder.path / "vault" / "notes"
    notes.mkdir(parents=True)
    (notes / "a.md").write_text("# A\nsoap\n")
    (notes / "b.md").write_text("# B\ncream\n")
    for written in ("a.md", "notes/a.md", "vault/notes/a.md", "notes/elsewhere.md"):
        folder.write(a_bare("one", "cream"), a_bare("two", "soap"))
        bot = Bot({"cream": (Chunk("1", rel_path=written, text="x"),)})
        session = folder.session(bot, search=NotesSearch(notes))
        session.go(1)
        paths = {candidate.chunk.rel_path for candidate in settle(session).pool.candidates}
        assert paths == {written.replace("elsewhere", "a")}
    assert path_prefix(notes, []) == ""


def test_threads_that_search_at_once_find_what_one_alone_finds(tmp_path: Path):
    for note in range(60):
        (tmp_path / f"{note:02}.md").write_text(
            f"# Note {note}\n" + "cream soap price\n" * (note % 7 + 1) + "x " * note
        )
    alone = NotesSearch(tmp_path).find("price of cream", 20)
    shared = NotesSearch(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda _: shared.find("price of cream", 20), range(8)))
    assert all(result == alone for result in results)


def test_a_search_in_an_empty_folder_finds_nothing(tmp_path: Path):
    assert NotesSearch(tmp_path).find("anything", 5) == []


# ── marking ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_gold_irrelevant_groups_and_answerable_end_in_the_file(folder: Desk):
    folder.write(a_bare("one"), a_bare("two"))
    session = folder.session()
    point(session, "a").toggle_gold()
    point(session, "b").toggle_irrelevant()
    point(session, "c").put_in_group(2)
    session.go(1)
    session.set_answerable(is_answerable=False)
    assert session.save()
    one, two = folder.cases().values()
    assert one.gold.supports == (Anchor("notes/a.md"), Anchor("notes/c.md"))
    assert one.gold.support_groups == ((0,), (1,))
    assert one.gold.irrelevant_supports == (Anchor("notes/b.md"),)
    assert two.answerable is False


def test_marking_again_takes_the_mark_away_and_the_line_is_as_it_was(folder: Desk):
    folder.write(a_bare("one"), a_bare("two"))
    before = folder.file.read_bytes()
    session = folder.session()
    point(session, "a").toggle_gold()
    session.save()
    assert folder.file.read_bytes() != before
    session.toggle_gold()
    session.save()
    assert folder.file.read_bytes() == before


def test_a_range_is_marked_at_once(folder: Desk):
    folder.write(a_bare("one"))
    session = folder.session()
    session.move(2, extends=True)
    session.toggle_gold()
    assert len(session.marks.golds) == 3
    session.toggle_irrelevant()
    assert (len(session.marks.golds), len(session.marks.irrelevant)) == (0, 3)


def test_a_snippet_tells_chunks_of_one_section_apart(folder: Desk):
    folder.write(a_bare("one"))
    chunks = (a_chunk("a", "the price is 5", "# P"), a_chunk("a", "the colour is red", "# P"))
    session = folder.session(Bot({"q": chunks}))
    session.row = next(at for at, c in enumerate(session.pool.candidates) if "price" in (c.chunk.text or ""))
    session.add_snippet("price is 5")
    assert session.marks.golds == (Anchor("notes/a.md", "# P", ("price is 5",)),)
    assert [bool(golds) for golds in session.view().golds].count(True) == 1
    session.add_snippet("price")
    assert session.marks.golds == (Anchor("notes/a.md", "# P", ("price is 5", "price")),)


def test_chunks_without_paths_are_marked_by_id(folder: Desk):
    folder.write(a_bare("one"))
    session = folder.session(Bot({"q": (Chunk("c1", text="x"), Chunk("c2", text="y"), Chunk(text="z"))}))
    session.move(2, extends=True)
    session.toggle_gold()
    assert "says no id" in session.message
    session.put_in_group(2)
    assert session.message == "groups are for places; this case's golds are ids"
    assert session.save()
    assert set(folder.cases()["one"].gold.chunk_ids or ()) == {"c1", "c2"}


def test_undo_goes_back_over_all_cases_and_redo_forward(folder: Desk):
    folder.write(a_bare("one"), a_bare("two"))
    before = folder.file.read_bytes()
    session = folder.session()
    point(session, "a").toggle_gold()
    point(session, "b").toggle_gold()
    session.go(1)
    session.set_answerable(is_answerable=False)
    session.go(-1)
    after = folder.file.read_bytes()
    assert session.undo_steps == 3
    session.undo()
    assert session.case.id == "two"
    session.undo()
    session.undo()
    assert (session.case.id, session.marks) == ("one", Marks())
    session.undo()
    assert session.message == "nothing to undo"
    session.save()
    assert folder.file.read_bytes() == before
    for _ in range(3):
        session.redo()
    session.save()
    assert folder.file.read_bytes() == after
    session.redo()
    assert session.message == "nothing to redo"


@given(st.lists(st.sampled_from(["gold", "irrelevant", "group", "down", "u", "a", "next", "back"]), max_size=12))
def test_after_any_keys_all_undone_is_the_file_as_it_was(tmp_path_factory: pytest.TempPathFactory, keys: list[str]):
    desk = Desk(tmp_path_factory.mktemp("any"))
    supports = [{"rel_path": "notes/a.md"}, {"rel_path": "notes/z.md"}]
    desk.write(a_bare("one"), a_bare("two", gold_supports=supports, required_support_groups=[[0], [1]]))
    before = desk.file.read_bytes()
    session = desk.session()
    actions = {
        "gold": session.toggle_gold, "irrelevant": session.toggle_irrelevant, "group": lambda: session.put_in_group(2),
        "down": lambda: session.move(1), "u": lambda: session.set_answerable(is_answerable=False),
        "a": lambda: session.set_answerable(is_answerable=True), "next": lambda: session.go(1),
        "back": lambda: session.go(-1),
    }  # fmt: skip
    try:
        for key in keys:
            actions[key]()
            settle(session)
        assert session.save(), session.message
        for _ in range(session.undo_steps):
            session.undo()
        assert session.save()
        assert desk.file.read_bytes() == before
    finally:
        desk.sources[0].close()


# ── going on ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_session_resumes_at_the_first_case_without_a_label_and_t_finds_the_next(folder: Desk):
    folder.write(a_bare("one", answerable=False), a_bare("two"), a_bare("three", gold_supports=[{"rel_path": "x"}]),
                 a_bare("four"))  # fmt: skip
    session = folder.session()
    assert (session.case.id, session.labelled) == ("two", 2)
    session.next_unlabelled()
    assert session.case.id == "four"
    session.skip()
    assert session.message == "this is the last case"
    session.next_unlabelled()
    assert session.case.id == "two"
    session.next_unlabelled()
    assert session.message == "no other case is left to be labelled"


def test_skipping_leaves_the_case_as_it_was(folder: Desk):
    folder.write(a_bare("one"), a_bare("two"))
    before = folder.file.read_bytes()
    session = folder.session()
    session.toggle_gold()
    session.skip()
    assert (session.case.id, folder.file.read_bytes()) == ("two", before)
    session.undo()
    assert len(session.marks.golds) == 1


def test_words_are_found_in_texts_and_more_can_be_asked(folder: Desk):
    folder.write(a_bare("one"))
    session = folder.session(Bot({"q": (a_chunk("a"), a_chunk("b", "Hidden  Treasure")), "more": (a_chunk("new"),)}))
    assert session.find("hidden treasure")
    assert session.row == row_of(session, "b")
    assert not session.find("nowhere")
    session.take_more(session.at, session.ask_more("more").result(60))
    assert session.message == "1 more chunks"
    point(session, "new").toggle_gold()
    assert session.marks.golds == (Anchor("notes/new.md"),)


def test_what_the_spelling_has_no_room_for_stays_on_screen_with_the_reason(folder: Desk):
    file = folder.path / "cases.csv"
    file.write_text("question,reference\nWhy?,x\nHow?,y\n")
    session = folder.session(Bot({"Why?": (a_chunk("a"),)}), file=file)
    session.toggle_gold()
    session.go(1)
    assert session.at == 0
    assert "the header lacks the column gold_supports" in session.message
    assert not session.is_saved


# ── others at the same file ───────────────────────────────────────────────────────────────────────────────────


def test_a_file_changed_meanwhile_is_kept_and_the_labels_too(folder: Desk):
    folder.write(a_bare("one"), a_bare("two"))
    session = folder.session()
    point(session, "a").toggle_gold()
    folder.write(a_bare("theirs"))
    session.go(1)
    assert "was changed by another program meanwhile" in session.message
    assert ".labels-" in session.store.file_name
    point(session, "b").toggle_gold()
    session.save()
    assert [*folder.cases()] == ["theirs"]
    (aside,) = folder.path.glob("cases.labels-*.jsonl")
    assert aside.name in session.message
    kept = load_file(aside, folder.path)
    assert [(case.id, case.gold.supports) for case in kept.cases] == [
        ("one", (Anchor("notes/a.md"),)), ("two", (Anchor("notes/b.md"),)),
    ]  # fmt: skip
    assert find_case_files(folder.path, ("*.jsonl",)) == [folder.file]


def test_a_second_opinion_begins_empty_goes_into_a_file_of_its_own_and_is_resumed(folder: Desk):
    folder.write(a_bare("one", gold_supports=[{"rel_path": "notes/a.md"}]), a_bare("two", answerable=False))
    before = folder.file.read_bytes()
    session = folder.session(blind="anna")
    assert session.marks == Marks()
    assert not any(candidate.is_listed for candidate in session.pool.candidates)
    point(session, "b").toggle_gold()
    session.go(1)
    session.set_answerable(is_answerable=False)
    session.save()
    assert folder.file.read_bytes() == before
    again = folder.session(blind="anna")
    assert [state.marks.is_label for state in again.states] == [True, True]
    assert find_case_files(folder.path, ("*.jsonl",)) == [folder.file]
    for name in ("", "../x", "a b"):
        with pytest.raises(CaseError, match="a name is needed"):
            opinion_file(folder.file, name)


def test_agreement_counts_places_that_both_judged(folder: Desk):
    folder.write(*(a_bare(f"c{at}", f"q{at}") for at in range(3)))
    chunks = {f"q{at}": tuple(map(a_chunk, "abcd")) for at in range(3)}
    for name, golds in {"anna": ("a", "a", "u"), "ben": ("a", "b", "u")}.items():
        session = folder.session(Bot(chunks), blind=name)
        for gold in golds:
            if gold == "u":
                session.set_answerable(is_answerable=False)
            else:
                point(session, gold).toggle_gold()
            session.go(1)
            settle(session)
    files = opinion_files(folder.file)
    assert [*files] == ["anna", "ben"]
    cases = load_file(folder.file, folder.path).cases
    results = agreements(cases, {name: opinions(file, folder.path) for name, file in files.items()})
    assert [(result.first, result.second, result.cases) for result in results] == [
        (THE_FILE, "anna", 0), (THE_FILE, "ben", 0), ("anna", "ben", 3),
    ]  # fmt: skip
    both = results[-1]
    assert both.decisions.n == 12
    assert both.decisions.agreement is not None
    assert both.decisions.agreement.value == pytest.approx(10 / 12)
    assert both.decisions.kappa is not None
    # Golds 2 and 2 of 12, one in common: (10/12 - 104/144) / (1 - 104/144).
    assert both.decisions.kappa.value == pytest.approx(0.4)
    assert sorted((d.case_id, str(d.place), d.gold_of) for d in both.differences) == [
        ("c1", "notes/a.md", "anna"), ("c1", "notes/b.md", "ben"),
    ]  # fmt: skip
    assert disputed(results) == {"c1"}


# ── drafts ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_drafts_are_accepted_dropped_and_taken_back(folder: Desk):
    folder.file.write_text('{"id": "old", "question": "x"}')  # without a line end
    drafts = folder.write(*(a_bare(f"d{at}") for at in range(3)), name="cases.drafts.jsonl")
    before = drafts.read_bytes(), folder.file.read_bytes()
    session = folder.session(file=drafts)
    point(session, "a").toggle_gold()
    session.decide("accepted")
    session.decide("dropped")
    assert session.case.id == "d2"
    assert [*folder.cases()] == ["old", "d0"]
    assert folder.cases()["d0"].gold.supports == (Anchor("notes/a.md"),)
    assert [case.id for case in load_file(drafts, folder.path).cases] == ["d2"]
    assert (session.labelled, session.undo_steps) == (2, 3)
    for _ in range(3):
        session.undo()
    session.save()
    assert (drafts.read_bytes(), folder.file.read_bytes()) == before


def test_a_draft_whose_id_is_taken_is_not_accepted(folder: Desk):
    folder.write(a_bare("same", "other question"))
    session = folder.session(file=folder.write(a_bare("same"), name="cases.drafts.jsonl"))
    session.decide("accepted")
    assert "cases.jsonl has a case with this id; press e" in session.message
    session.edit_draft('{"id": "new", "question": "q"}')
    session.decide("accepted")
    assert [*folder.cases()] == ["same", "new"]


def test_a_draft_that_was_appended_before_we_were_stopped_is_not_appended_twice(folder: Desk):
    drafts = folder.write(a_bare("a"), a_bare("b"), name="cases.drafts.jsonl")
    folder.write(a_bare("a"))
    session = folder.session(file=drafts)
    session.decide("accepted")
    assert [*folder.cases()] == ["a"]
    assert [case.id for case in load_file(drafts, folder.path).cases] == ["b"]


@pytest.mark.parametrize("changed", ["cases.jsonl", "cases.drafts.jsonl"])
def test_drafts_or_cases_changed_meanwhile_are_kept_and_the_draft_too(folder: Desk, changed: str):
    folder.write(a_bare("old"))
    drafts = folder.write(a_bare("a"), a_bare("b"), name="cases.drafts.jsonl")
    session = folder.session(file=drafts)
    point(session, "a").toggle_gold()
    theirs = folder.write(a_bare("theirs"), name=changed)
    session.decide("accepted")
    assert "was changed by another program meanwhile" in session.message
    assert [case.id for case in load_file(theirs, folder.path).cases] == ["theirs"]
    (aside,) = folder.path.glob("cases.drafts.labels-*.jsonl")
    assert load_file(aside, folder.path).cases[0].gold.supports == (Anchor("notes/a.md"),)


def test_an_edited_draft_that_is_no_case_is_not_taken(folder: Desk):
    drafts = folder.write(a_bare("a"), name="cases.drafts.jsonl")
    session = folder.session(file=drafts)
    for text in ("{", '{"id": "a"}', "[]", '{"id": "a", "question": "q", "quesion": 1}'):
        session.edit_draft(text)
        assert "not taken" in session.message
    assert session.case.id == "a"
    assert find_case_files(folder.path, ("*.jsonl",)) == []


def test_a_target_that_blocks_its_loop_does_not_keep_anybody_from_quitting(
    folder: Desk, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pytest_rageval.workbench.label.asking.CLOSE_PATIENCE_S", 0.1)
    is_over = threading.Event()

    class Blocking(Bot):
        async def ask(self, request: AskRequest) -> Answer:
            is_over.wait(120)
            return Answer("x", chunks=())

    folder.write(a_bare("a"))
    source = folder.source(Blocking())
    source.pool(load_file(folder.file, folder.path).cases[0])
    start = time.monotonic()
    source.close()
    assert time.monotonic() - start < 60
    is_over.set()


def test_everything_is_closed(folder: Desk):
    folder.write(a_bare("a"))
    bot = Bot()
    session = folder.session(bot)
    session.source.close()
    assert bot.is_closed
    assert isinstance(session.pool, Pool)
