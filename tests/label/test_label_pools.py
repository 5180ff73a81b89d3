"""Pools of chunks for labelling: merged in their order, with what only a word search finds."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from label_desk import a_session
from labelling import Bot, Desk, a_bare, a_chunk, point, settle, write_cases
from processes import wait_until

from pytest_rageval.label.notes_search import NotesSearch
from pytest_rageval.label.pools import Retrieval, merged, path_prefix
from pytest_rageval.model import Anchor, Chunk, EvalCase

CASE = EvalCase("c", "q")


def test_a_pool_merges_equal_chunks_and_says_who_had_them_where():
    first = Retrieval("one", (a_chunk("a", score_final=0.5), a_chunk("b")))
    second = Retrieval("two", (a_chunk("b"), a_chunk("c")))
    pool = merged(CASE, [first, second])
    ranks = {c.chunk.chunk_id: [(r.system, r.rank, r.score) for r in c.ranks] for c in pool.candidates}
    assert ranks == {"a": [("one", 1, 0.5)], "b": [("one", 2, None), ("two", 1, None)], "c": [("two", 2, None)]}


@given(st.permutations([a_chunk(name) for name in "abcdefgh"]))
def test_the_shuffled_order_follows_from_the_case_and_not_from_the_systems(chunks: list[Chunk]):
    orders = {
        tuple(c.chunk.chunk_id for c in merged(CASE, [Retrieval("one", tuple(some))], is_shuffled=True).candidates)
        for some in (chunks, [a_chunk(name) for name in "abcdefgh"])
    }
    assert len(orders) == 1


def test_the_order_is_that_of_the_best_rank_that_a_system_or_the_search_gives():
    first = Retrieval("one", tuple(map(a_chunk, "abc")))
    second = Retrieval("two", tuple(map(a_chunk, "cad")))
    pool = merged(CASE, [first, second], [*map(a_chunk, "xb")])
    assert [candidate.chunk.chunk_id for candidate in pool.candidates] == ["a", "c", "x", "b", "d"]


def test_a_blind_labeller_alone_sees_the_chunks_shuffled(tmp_path: Path):
    file = write_cases(tmp_path / "cases.jsonl", {"id": "c", "question": "q"})
    texts = {name: name for name in "abcdefgh"}

    def order(blind: str | None) -> list[str | None]:
        with a_session(file, texts, blind=blind) as session:
            return [candidate.chunk.chunk_id for candidate in session.pool.candidates]

    assert order(None) == [*texts]
    assert order("anna") != [*texts]


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
    wait_until(lambda: len(bot.requests) >= 4, "one more is asked ahead")
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
    for written in ("a.md", "notes/a.md", "vault/notes/a.md", "notes/elsewhere.md", "https://host/x/a.md"):
        folder.write(a_bare("one", "cream"), a_bare("two", "soap"))
        bot = Bot({"cream": (Chunk("1", rel_path=written, text="x"),)})
        session = folder.session(bot, search=NotesSearch(notes))
        session.go(1)
        paths = {candidate.chunk.rel_path for candidate in settle(session).pool.candidates}
        # Golds name notes by their path, also where a system gives addresses on the web.
        assert paths == {written.replace("elsewhere", "a").removeprefix("https://host/x/")}
    assert path_prefix(notes, []) == ""
