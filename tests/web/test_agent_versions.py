"""Agents as plain files: what a version holds, that none is ever changed, and that a run takes it as it is."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hostile import PAYLOADS
from hypothesis import given
from hypothesis import strategies as st
from project import Project, a_case

from pytest_rageval.config.toml_text import toml_document
from pytest_rageval.errors import Problems, SettingsError
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.metrics import load_registry
from pytest_rageval.web.versions.agent import Agent, AgentVersion, agent_text, default_prompt, read_agent
from pytest_rageval.web.versions.agent_store import AgentStore, agent_problems, agent_warnings
from pytest_rageval.web.versions.value_changes import agent_changes, changed_in_words
from pytest_rageval.web.versions.version_folder import NewerVersion, UnknownVersion, checked_slug, is_slug, slug_of

REGISTRY = load_registry([])
PROMPT = "Compare {answer} with {reference}, which answers {question}."


@pytest.fixture
def store(tmp_path: Path) -> AgentStore:
    return AgentStore(tmp_path / "data")


def an_agent(**fields: Any) -> Agent:
    defaults: dict[str, Any] = {
        "name": "Shop bot", "target": "demo", "metrics": ("reference_match", "recall_any"),
        "thresholds": {"reference_match": 0.7}, "tags": ("shop",),
    }  # fmt: skip
    return Agent(**{**defaults, **fields})


def messages(agent: Agent, store: AgentStore) -> dict[str, str]:
    return dict(agent_problems(agent, store.registry, store.folder))


def test_a_version_reads_back_as_it_was_saved(store: AgentStore):
    agent = an_agent(
        description="Answers\nquestions", target="http://localhost:8080", llm="qwen2.5-14b", k=8, judge="openai:gpt-4o",
        mapping={"request": {"q": "{question}"}, "response": {"answer": "text"}}, params={"min_score": 0.3},
        headers={"X-Api-Key": "env:BOT_KEY"}, thresholds={"groundedness": 0.7, "hallucinated": 0.1},
        gates=("mrr >= 0.5 when category=factual", "run recall_any@5 >= 0.8"), judge_temperature=0.2,
        prompts={"reference_match": PROMPT, "correctness": 'A "quoted"\nprompt \\ of {question}, {answer}'},
        more={"timeout": 30.0, "known_failures": "ratchet", "metrics": {"precision": {"denominator": "k"}}},
    )  # fmt: skip
    saved = store.save("shop-bot", agent, "first", 0)
    assert store.read("shop-bot", 1) == saved == store.newest("shop-bot")
    assert saved.agent == agent
    assert messages(agent, store) == {}


@pytest.mark.parametrize("text", PAYLOADS)
def test_hostile_texts_are_texts_in_every_field(store: AgentStore, text: str):
    agent = an_agent(
        name=text, description=text, tags=(text,), params={text: text}, llm=text, prompts={"reference_match": text}
    )
    saved = store.save(slug_of(text), agent, text, 0)
    assert store.read(saved.slug, 1) == saved
    assert [path.parent.name for path in store.folder.rglob("v1.toml")] == [slug_of(text)]
    assert is_slug(saved.slug)


def test_a_saved_file_is_never_written_over_and_may_not_be_written_to(store: AgentStore):
    store.save("bot", an_agent(), "", 0)
    before = store.content("bot", 1)
    store.save("bot", an_agent(k=7), "more chunks", 1)
    assert store.content("bot", 1) == before
    assert store.path("bot", 1).stat().st_mode & 0o777 == 0o444
    assert [path.name for path in sorted(store.path("bot", 1).parent.iterdir())] == ["v1.toml", "v2.toml"]


def test_of_many_windows_that_save_at_once_one_gets_each_number(store: AgentStore):
    store.save("bot", an_agent(), "", 0)
    outcomes: list[str] = []

    def save(number: int) -> None:
        try:
            outcomes.append(f"saved {store.save('bot', an_agent(k=number), '', 1).number}")
        except NewerVersion:
            outcomes.append("newer")

    threads = [threading.Thread(target=save, args=(number,)) for number in range(2, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes) == ["newer"] * 7 + ["saved 2"]
    assert store.numbers("bot") == [1, 2]


def test_a_file_that_was_changed_is_named(store: AgentStore):
    store.save("bot", an_agent(), "", 0)
    path = store.path("bot", 1)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b">= 70%", b">= 10%"))
    assert store.read("bot", 1).problem == (
        f"{path} was changed after it was saved: restore it from git or a backup, or save it as a new version"
    )
    with pytest.raises(SettingsError, match="was changed after it was saved"):
        store.write_configuration("bot", 1, path.parent / "job")


def test_other_line_ends_are_no_change(store: AgentStore):
    """As git checks a file out on Windows."""
    store.save("bot", an_agent(prompts={"reference_match": f"{PROMPT}\nAnd so on.\n"}), "", 0)
    path = store.path("bot", 1)
    path.chmod(0o644)
    version = store.read("bot", 1)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert store.read("bot", 1) == version


def test_a_version_that_somebody_puts_there_by_hand_is_seen(store: AgentStore):
    store.save("bot", an_agent(), "", 0)
    own = store.path("bot", 7)
    own.write_text('target = "bot:answer"\nknown_failures = "ratchet"\n[gates]\nrun = ["mrr >= 0.5"]\n', "utf-8")
    version = store.newest("bot")
    assert (version.number, version.agent.name, version.agent.target) == (7, "bot", "bot:answer")
    assert version.agent.gates == ("run mrr >= 0.5",)
    assert version.agent.more == {"known_failures": "ratchet"}
    assert version.problem is not None
    assert "has no seal" in version.problem
    assert store.save("bot", version.agent, "", 7).number == 8
    assert store.read("bot", 8).agent == version.agent


def test_a_file_that_holds_no_version_is_a_line_and_hides_no_other(store: AgentStore):
    store.save("bot", an_agent(), "", 0)
    store.path("bot", 2).write_text("target = ", "utf-8")
    versions, problems = store.versions("bot")
    assert [version.number for version in versions] == [1]
    assert len(problems) == 1
    assert "v2.toml: not valid TOML" in problems[0]


@pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", "politeness", "reference_match.txt"])
def test_a_prompt_of_a_file_from_elsewhere_becomes_no_other_file_than_that_of_its_rubric(store: AgentStore, name: str):
    path = store.path("bot", 1)
    path.parent.mkdir(parents=True)
    path.write_text(f'target = "demo"\n[agent.prompts]\n"{name}" = "x {{answer}}"\n', "utf-8")
    with pytest.raises(SettingsError, match="is no shipped rubric"):
        store.write_configuration("bot", 1, path.parent / "job")
    assert sorted(path.parent.iterdir()) == [path]


KEYS = ("target", "params", "headers", "k", "judge", "rubrics", "versions", "metrics", "gates", "timeout", "agent")
INNER = ("enabled", "llm", "case", "run", "name", "thresholds", "prompts", "tags", "note", "created", "url", "mapping",
         "reference_match", "mrr")  # fmt: skip
LEAVES = st.text(max_size=5) | st.integers(-2, 9) | st.booleans() | st.floats(0, 1) | st.lists(st.text(max_size=4))
TABLES = st.dictionaries(st.sampled_from(INNER), LEAVES | st.dictionaries(st.sampled_from(INNER), LEAVES, max_size=2))


@given(st.dictionaries(st.sampled_from(KEYS), LEAVES | TABLES, max_size=5))
def test_whatever_stands_in_a_file_it_is_a_version_or_a_line(table: dict[str, Any]):
    problems = Problems()
    version = problems.attempt(read_agent, toml_document(table).encode(), "bot", 1, "v1.toml", REGISTRY)
    assert all(problem.startswith("v1.toml: ") for problem in problems)
    assert bool(problems) == (version is None)
    assert (
        version is None or read_agent(agent_text(version, REGISTRY).encode(), "bot", 1, "v1.toml", REGISTRY) == version
    )


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", "A", "a b", "con", "new", "a" * 61, "-a", "a\n", "é"])
def test_no_other_name_than_a_slug_becomes_a_path(store: AgentStore, name: str):
    assert not is_slug(name)
    with pytest.raises(SettingsError):
        checked_slug(name)
    with pytest.raises(UnknownVersion):
        store.newest(name)
    with pytest.raises(UnknownVersion):
        store.read(name, 1)


def test_names_in_any_script_have_slugs_of_their_own():
    assert slug_of("Shop Bot (EU)") == "shop-bot-eu"
    assert len({slug_of(name) for name in ("쇼핑봇", "쇼핑 봇", "店", "Bot 店", "Bot", "!!!", "new")}) == 7
    assert all(is_slug(slug_of(name)) for name in ("쇼핑봇", "", "con", "x" * 200, "Ünïcode", *PAYLOADS))


@pytest.mark.parametrize(
    ("field", "fields", "words"),
    [
        ("target", {"target": "htp:/x y"}, "targets are spelt"),
        ("target", {"target": "http://"}, "expected a URL"),
        ("target", {"target": "openai:a@b"}, "a model is spelt openai:MODEL"),
        ("judge", {"judge": "gpt-4o"}, "write lexical, openai:MODEL"),
        ("threshold.mrr", {"thresholds": {"mrr": 70}}, "expected a number from 0 to 1"),
        ("gates", {"gates": ("mrr > 3",)}, "beyond the scale of mrr"),
        ("gates", {"gates": ("what",)}, "cannot be read"),
        ("params", {"params": {"k": 3}}, "cannot be set"),
        ("prompt.reference_match", {"prompts": {"reference_match": "{foo}"}}, "unknown placeholder {foo}"),
        ("prompt.reference_match", {"prompts": {"reference_match": "Rate {question}"}}, "prompt has no {answer}"),
        ("headers", {"headers": {"Authorization": "Bearer abcdefghijklmnop"}}, "write env:NAME"),
        ("headers", {"target": "http://me:secretsecret@host"}, "write env:NAME"),
        ("headers", {"params": {"api_key": "sk-abcdefghijklmnopqrstuv"}}, "write env:NAME"),
    ],
)
def test_what_a_run_would_refuse_stands_beside_its_field(
    store: AgentStore, field: str, fields: dict[str, Any], words: str
):
    problems = messages(an_agent(**fields), store)
    assert words in problems[field]


@pytest.mark.parametrize("target", ["openai:gpt-4o", "openai:gpt-4o@http://localhost:9"])
def test_a_judge_that_is_the_tested_model_draws_the_warning_under_all_its_names(store: AgentStore, target: str):
    judged = {"judge": "openai:gpt-4o-2024-08-06", "thresholds": {}}
    for agent, models in (
        (an_agent(target=target, **judged), ()),
        (an_agent(llm="gpt-4o", **judged), ()),
        (an_agent(target=None, **judged), ("gpt-4o",)),
    ):
        (warning,) = agent_warnings(agent, store.registry, models)
        assert "judges itself" in warning
    (kin,) = agent_warnings(an_agent(llm="gpt-3.5-turbo", **judged), store.registry)
    assert "a model of its own family" in kin
    assert agent_warnings(an_agent(target=target, thresholds={}), store.registry) == []


def test_a_threshold_that_the_heuristic_judge_can_never_look_at_draws_a_warning(store: AgentStore):
    (warning,) = agent_warnings(an_agent(thresholds={"synthesis": 0.7, "groundedness": 0.7}), store.registry)
    assert warning.startswith("synthesis is not scored by the heuristic judge")


def test_a_prompt_that_the_heuristic_judge_does_not_read_draws_a_warning(store: AgentStore):
    prompts = {"reference_match": PROMPT}
    (warning,) = agent_warnings(an_agent(prompts=prompts, judge="lexical"), store.registry)
    assert warning.startswith("the heuristic judge lexical reads no prompt, and so not that of reference_match")
    assert agent_warnings(an_agent(prompts=prompts, judge="openai:gpt-4o"), store.registry) == []


def test_the_difference_of_two_versions_names_fields_thresholds_and_words_of_the_prompt():
    before = an_agent(k=5)
    after = an_agent(
        k=8, thresholds={"reference_match": 0.8, "mrr": 0.5},
        prompts={"reference_match": default_prompt("reference_match").replace("an examiner", "a teacher")},
    )  # fmt: skip
    changes = {change.name: change for change in agent_changes(before, after)}
    assert list(changes) == ["k", "thresholds.reference_match", "thresholds.mrr", "prompts.reference_match"]
    assert (changes["thresholds.reference_match"].before, changes["thresholds.reference_match"].after) == ("0.7", "0.8")
    differing = [piece for piece in changes["prompts.reference_match"].pieces if piece.kind != "same"]
    assert [(piece.kind, piece.text.strip()) for piece in differing] == [("gone", "an examiner"), ("new", "a teacher")]
    assert changed_in_words(list(changes.values())) == (
        "k 5 → 8, threshold of reference_match 0.7 → 0.8, threshold of mrr – → 0.5, judge prompt of reference_match"
    )
    assert agent_changes(after, after) == []


@pytest.mark.parametrize(
    "prompt", [PROMPT, default_prompt("reference_match").replace("an examiner", "a teacher")], ids=["text", "shipped"]
)
def test_a_run_takes_an_agent_version_as_its_configuration(project: Project, prompt: str):
    store = AgentStore(project.path / "data")
    agent = an_agent(
        target="bot:answer", judge="stub:0.8", metrics=("reference_match", "recall_any"),
        thresholds={"reference_match": 0.85}, prompts={"reference_match": prompt},
    )  # fmt: skip
    store.save("bot", agent, "", 0)
    (project.path / "pyproject.toml").unlink()
    store.write_configuration("bot", 1, project.path)
    assert (project.path / "rageval.toml").read_bytes() == store.content("bot", 1)
    project.cases([a_case("boil")])
    result = project.rageval("run", "--judge-cache", "off")
    assert result.ret == 1
    (record,) = project.records().values()
    assert record["scores"]["reference_match"] == 0.8
    config = json.loads((project.runs[-1] / "config.json").read_text(encoding="utf-8"))
    assert "reference_match >= 85%" in json.dumps(config)
    version = project.metrics()["judge"]["prompt_versions"]["reference_match"]
    assert version.startswith("text+" if prompt is PROMPT else "3+")
    assert version != load_rubric("reference_match").prompt_version


def test_the_file_alone_says_that_its_prompts_are_missing(project: Project):
    """Nobody must be judged by the shipped prompt unnoticed."""
    store = AgentStore(project.path / "data")
    version: AgentVersion = store.save("bot", an_agent(prompts={"reference_match": PROMPT}), "", 0)
    (project.path / "pyproject.toml").unlink()
    (project.path / "rageval.toml").write_bytes(store.content("bot", version.number))
    project.cases([a_case("boil")])
    result = project.rageval("run")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*rubrics: rubrics is not there or empty*"])
