"""`rageval judge-cache`: what a person sees, what a program reads, what travels, what goes, and the exit codes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from project import problems

from pytest_rageval.cli.main import rageval
from pytest_rageval.judges.cache.cache_key import key_parts
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache
from pytest_rageval.model import Judgement, JudgeRequest

pytestmark = pytest.mark.usefixtures("here")

DEFAULT = Path("reports/cache/judge_cache.sqlite")


def judge_cache(*arguments: str | Path) -> Result:
    return CliRunner().invoke(rageval, ["judge-cache", *map(str, arguments)])


def a_filled(*questions: str, path: Path = DEFAULT, model: str = "m/1", score: float = 4.0) -> None:
    cache = SqliteCache(path)
    for question in questions:
        request = JudgeRequest("groundedness", "1+abc", {"question": question, "answer": "so", "contexts": []})
        parts = key_parts(request, model)
        cache.put(parts.key, Judgement("groundedness", {"groundedness": score}, (0.0, 5.0), model=model), parts)
    cache.close()
    assert cache.notes == []


def change(statement: str, *values: object) -> None:
    with closing(sqlite3.connect(DEFAULT)) as connection, connection:
        connection.execute(statement, values)


def count(path: Path = DEFAULT) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (found,) = connection.execute("SELECT count(*) FROM judgements").fetchone()
    return int(found)


def test_stats_count_by_rubric_and_model_the_most_first():
    a_filled("why?", "who?")
    a_filled("how?", model="모델\x1b[31m")
    change("UPDATE judgements SET created = '2026-01-02T03:04:05Z'")
    result = judge_cache("stats")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        f"{DEFAULT}: 3 judgements, {DEFAULT.stat().st_size / 1000:.1f} kB",
        "          2  2026-01-02 to 2026-01-02  groundedness by m/1",
        "          1  2026-01-02 to 2026-01-02  groundedness by 모델\\x1b[31m",
    ]


def test_the_cache_is_the_project_s_unless_another_is_named(here):
    (here / "rageval.toml").write_text('reports = "out"')
    a_filled("why?", path=Path("out/cache/judge_cache.sqlite"))
    a_filled("why?", "who?", path=Path("other.sqlite"))
    assert "1 judgement," in judge_cache("stats").output
    assert "2 judgements," in judge_cache("stats", "--cache", "other.sqlite").output


@pytest.mark.parametrize("verb", [["stats"], ["export", "-"], ["prune", "--model", "m"]])
def test_where_there_is_no_cache_that_is_said_and_none_is_made(here, verb):
    (problem,) = problems(judge_cache(*verb))
    assert problem == f"{DEFAULT}: there is no judge cache; a run whose judge is a model begins one"
    assert list(here.iterdir()) == []


def _garbage() -> bytes:
    return b"somebody's notes, no database\n" * 100


def _half() -> bytes:
    return DEFAULT.read_bytes()[:5000]


@pytest.mark.parametrize("spoil", [_garbage, _half])
@pytest.mark.parametrize("verb", [["stats"], ["export", "-"], ["prune", "--model", "m"], ["import", "lines.jsonl"]])
def test_a_file_that_is_no_cache_is_named_and_left_as_it_is(here, verb, spoil):
    a_filled("why?")
    assert judge_cache("export", "lines.jsonl").exit_code == 0
    content = spoil()
    DEFAULT.write_bytes(content)
    (problem,) = problems(judge_cache(*verb))
    assert problem.startswith(f"{DEFAULT}: not usable as a judge cache: ")
    assert DEFAULT.read_bytes() == content
    assert [one.name for one in DEFAULT.parent.iterdir()] == [DEFAULT.name]


def test_what_is_exported_and_imported_elsewhere_exports_the_same_bytes():
    a_filled("why?", "누가?", "how?")
    assert judge_cache("export", "a.jsonl").stderr == "exported 3 judgements\n"
    result = judge_cache("import", "a.jsonl", "--cache", "else/b.sqlite")
    assert (result.exit_code, result.output) == (0, "read 3 judgements: 3 added, 0 replaced, 0 there already\n")
    assert judge_cache("export", "b.jsonl", "--cache", "else/b.sqlite").exit_code == 0
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()
    assert judge_cache("export", "-").stdout_bytes == Path("a.jsonl").read_bytes()


def test_what_is_there_already_stays_unless_it_is_to_be_replaced():
    a_filled("why?", score=1.0)
    judge_cache("export", "old.jsonl")
    DEFAULT.unlink()
    a_filled("why?", "who?", score=5.0)
    judge_cache("export", "new.jsonl")
    assert judge_cache("import", "old.jsonl").output == "read 1 judgement: 0 added, 0 replaced, 1 there already\n"
    assert judge_cache("export", "-").stdout_bytes == Path("new.jsonl").read_bytes()
    result = judge_cache("import", "old.jsonl", "--replace")
    assert result.output == "read 1 judgement: 0 added, 1 replaced, 0 there already\n"
    assert judge_cache("export", "-").stdout.count('"groundedness": 1.0') == 1
    assert count() == 2


def test_all_bad_lines_are_named_with_their_place_and_nothing_is_imported():
    a_filled("why?", "who?")
    judge_cache("export", "a.jsonl")
    good, other = Path("a.jsonl").read_text().splitlines()
    Path("bad.jsonl").write_text(f"{good}\n{{\n\n{other.replace('m/1', 'm/2')}\n{good}\n")
    DEFAULT.unlink()
    found = problems(judge_cache("import", "bad.jsonl"))
    assert found[0] == "bad.jsonl:2:2: not valid JSON: expecting property name enclosed in double quotes"
    assert found[1].startswith("bad.jsonl:4:1: key ")
    assert "is not that of its parts" in found[1]
    assert "bad.jsonl:5:1: key " in found[2]
    assert found[3:] == ["nothing is imported"]
    assert not DEFAULT.exists()


def test_entries_that_cannot_be_read_are_left_out_of_an_export_and_named():
    a_filled("why?", "who?")
    row = "created, rubric, model, question, answer, contexts, parts"
    change(f"INSERT INTO judgements SELECT 'x' || key, {row}, judgement FROM judgements LIMIT 1")
    change(f"INSERT INTO judgements SELECT 'y', {row}, '{{}}' FROM judgements WHERE key NOT LIKE 'x%' LIMIT 1")
    result = judge_cache("export", "a.jsonl")
    assert result.exit_code == 1
    assert len(Path("a.jsonl").read_text().splitlines()) == 2
    exported, of_x, of_y = result.stderr.splitlines()
    assert exported == "exported 2 judgements"
    assert "left out: key x" in of_x
    assert "is not that of its parts" in of_x
    assert of_y.startswith("entry y… left out: ")


def test_prune_wants_to_be_told_what_may_go():
    a_filled("why?")
    result = judge_cache("prune")
    assert result.exit_code == 2
    assert "say what may go: --older-than, --model, --rubric, or several of them" in result.output
    assert count() == 1


def test_prune_says_what_it_removed_and_the_file_becomes_smaller():
    a_filled(*map(str, range(300)))
    a_filled("why?", model="m/2")
    size = DEFAULT.stat().st_size
    result = judge_cache("prune", "--model", "m/1")
    head, group = result.output.splitlines()
    assert head.startswith(f"{DEFAULT}: removed 300 of 301 judgements; ")
    assert group.split() == ["300", *group.split()[1:4], "groundedness", "by", "m/1"]
    assert (count(), DEFAULT.stat().st_size < size / 4) == (1, True)


def test_only_what_is_older_goes_and_all_that_is_told_must_hold():
    a_filled("why?", "who?")
    a_filled("how?", model="m/2")
    change("UPDATE judgements SET created = '2020-01-01T00:00:00Z' WHERE rowid IN (1, 3)")
    assert "removed 0 of 3" in judge_cache("prune", "--older-than", "36500").output
    assert "removed 0 of 3" in judge_cache("prune", "--older-than", "30", "--rubric", "relevance").output
    assert "removed 1 of 3" in judge_cache("prune", "--older-than", "30", "--model", "m/1").output
    assert "removed 1 of 2" in judge_cache("prune", "--older-than", "30").output
    assert count() == 1
