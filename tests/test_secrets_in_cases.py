"""Cases that hold a credential: it is masked in all files, and the run can be scored, labelled and asked again."""

from __future__ import annotations

from typing import Any

import pytest
from project import Project, a_case

KEY = "hunter2-hunter2-0123456789"
GOLD = [{"rel_path": "notes/water.md"}]
HISTORY = [{"role": "user", "text": f"My key is {KEY}."}, {"role": "assistant", "text": "Thank you."}]
BOT = """
def answer(question, history=()):
    text = "Water boils at 100 degrees at sea level."
    return {"answer": text, "retrieved_chunks": [{"rel_path": "notes/water.md", "text": text}]}
"""


def cases(**labels: Any) -> list[dict[str, Any]]:
    return [
        a_case("asked", f"Why is {KEY} refused?", gold_supports=GOLD, **labels),
        a_case("said", "And then?", gold_supports=GOLD, history=HISTORY, **labels),
        a_case("plain", "When does water boil?", gold_supports=GOLD, **labels),
    ]


@pytest.fixture
def asked(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with an accepted run."""
    monkeypatch.setenv("SHOP_API_KEY", KEY)
    project.write("bot.py", BOT)
    project.cases(cases())
    result = project.run("--rageval-target", "bot:answer", "--rageval-run-id", "one", "--rageval-update-baseline")
    assert result.ret == 0
    return project


def files_with_key(project: Project) -> list[str]:
    files = [path for path in (project.path / "reports").rglob("*") if path.is_file()]
    return [path.name for path in files if KEY.encode() in path.read_bytes()]


def hashes(project: Project) -> dict[str, tuple[str, str]]:
    records = project.results("one")
    return {record["test_case_id"]: (record["content_hash"], record["decision_hash"]) for record in records}


@pytest.mark.reliability("secrets", "a run whose cases hold a credential is scored again")
def test_a_run_is_the_same_when_it_is_scored_again(asked: Project):
    before = hashes(asked)
    result = asked.rageval("score", "one")
    assert "not comparable" not in result.stdout.str()
    assert result.ret == 0
    assert hashes(asked) == before


@pytest.mark.reliability("secrets", "labels from case files that hold a credential", costs="leak")
def test_new_labels_bring_no_credential_into_the_run(asked: Project):
    asked.cases(cases(tags=["new", f"of-{KEY}"]))
    assert asked.rageval("score", "one", "--cases", "evalcases").ret == 0
    assert not files_with_key(asked)
    again = asked.run("--rageval-target", "bot:answer", "--rageval-run-id", "two")
    assert again.ret == 0


@pytest.mark.reliability("secrets", "recorded answers to cases that hold a credential")
def test_recorded_answers_serve_cases_with_a_credential(asked: Project):
    assert asked.run("--rageval-target", "run:one", "--rageval-run-id", "two").ret == 0
    assert set(asked.outcomes().values()) == {"passed"}
