"""What of the texts is kept: by default their beginnings, all of them, or none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from judge_server import JudgeServer
from project import SOME, Project, a_case

from pytest_rageval.runs.records.record_texts import CUT
from pytest_rageval.views.rewrite import rewrite_view

pytestmark = pytest.mark.reliability("secrets", "texts of redacted runs", costs="leak")

WORDS = {
    "question": "quokkaword",
    "answer": "antelopeword",
    "chunk": "cheetahword",
    "trace": "tapirword",
    "folders": "ferretword",
    "refusal": "rabbitword",
    "raised": "ravenword",
    "said": "squirrelword",
    "claim": "capybaraword",
    "raw": "raccoonword",
    "gold": "giraffeword",
    "history": "hamsterword",
}
"""A word for each place: found again wherever its text got to."""
BOT = f'''
def answer(question):
    if "raise" in question:
        raise ValueError("could not read {WORDS["raised"]}")
    if "wrong" in question:
        return {{"answer": ["{WORDS["raised"]}"]}}
    long = "{WORDS["answer"]} " * 50
    trace = {{"concepts": ["{WORDS["trace"]} " * 50], "own": {{"note": ["{WORDS["trace"]}"]}}}}
    chunk = {{"chunk_id": "c1", "rel_path": "a.md", "text": "{WORDS["chunk"]} " * 50}}
    return {{
        "answer": "" if "refuse" in question else long, "abstained": "refuse" in question,
        "abstain_reason": "{WORDS["refusal"]} " * 50,
        "debug": {{"retrieved_chunks": [chunk], "trace": trace,
                   "folder_selection": {{"folders": ["f"], "reasoning": "{WORDS["folders"]} " * 50}}}},
    }}
'''
OWN_TEST = """
import pytest

@pytest.mark.rageval("evalcases/a.jsonl")
def test_own(eval_case, rageval):
    found = rageval.evaluate(eval_case)
    assert found.answer.text == "something else"
"""
OWN_METRIC = '''
from pytest_rageval import metric

@metric(layer="L5", better="higher")
def own(obs):
    """Breaks over what it reads."""
    if "metric" in obs.case.question:
        raise ValueError(f"cannot score {obs.answer.text}")
    return 1.0

def pytest_rageval_metrics(config):
    return [own]
'''


def a_question(id: str, **fields: Any) -> dict[str, Any]:
    gold = {"answer": WORDS["gold"] * 30, "key_facts": [WORDS["gold"]]}
    return a_case(id, f"please {id}: {WORDS['question']} " + "and so on " * 30, gold=gold, **fields)


CASES = [a_question(id) for id in ("tell", "refuse", "raise", "wrong", "metric", "prose")]


@pytest.fixture
def project(project: Project) -> Project:
    """A project in which each text has a word of its own, in every case another end."""
    project.write("bot.py", BOT)
    project.write("conftest.py", OWN_METRIC)
    project.cases(CASES)
    return project


class WordyJudge(JudgeServer):
    """Reasons and claims at length; about `prose` it writes what no score can be read from."""

    async def _route(self, connection: Any) -> None:
        asked = connection.request.body.decode()
        claims = [f"{WORDS['claim']} " * 50]
        reasoning = f"{WORDS['said']} " * 50
        lists = {"supported_claims": claims, "unsupported_claims": claims, "claims": claims}
        self.replies = ({"score": 4, "reasoning": reasoning, "abstained": False, **lists},)
        if "please prose" in asked:
            self.replies = (f"{WORDS['raw']} " * 100,)
        await super()._route(connection)


def run(project: Project, *arguments: str) -> pytest.RunResult:
    with WordyJudge() as server:
        return project.run("--rageval-judge", f"openai:judge-1@{server.url}", *arguments)


def words_kept(project: Project) -> dict[str, list[str]]:
    """Words that stand in files of the reports, by file."""
    found = {}
    for path in sorted((project.path / "reports").rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            names = [name for name, word in WORDS.items() if word.encode() in content]
            if names:
                found[str(path.relative_to(project.path))] = names
    return found


@pytest.mark.parametrize("how", [[], ["-n", "1"]], ids=["alone", "worker"])
def test_a_redacted_run_keeps_no_text_in_any_file(project: Project, how: list[str]):
    run(project, "--rageval-redact", "--rageval-update-baseline", "--rageval-force", *how)
    assert words_kept(project) == {}
    names = {path.name for path in (project.path / "reports").rglob("*") if path.is_file()}
    assert "observations.jsonl" not in names
    assert "judge_cache.sqlite" not in names
    records = project.records()
    assert {id: record["outcome"] for id, record in records.items()} == {
        "tell": "failed", "refuse": "failed", "raise": "error", "wrong": "error", "metric": "error", "prose": "error"
    }  # fmt: skip
    assert records["raise"]["error"] == {"kind": "exception", "message": None, "raw": None}
    assert records["tell"]["groundedness"]["score"] == 4
    assert records["tell"]["retrieved_chunks"][0]["rel_path"] == "a.md"
    log = (project.runs[-1] / "run.log").read_text(encoding="utf-8")
    assert "evalcases/a.jsonl::raise: exception: its message is left out" in log


def test_tests_of_the_users_own_put_no_text_into_a_redacted_run(project: Project):
    project.write("test_own.py", OWN_TEST)
    run(project, "--rageval-redact", "test_own.py", "-k", "tell")
    assert words_kept(project) == {}
    assert project.records()["tell"]["outcome"] == "failed"


@pytest.mark.child_process
def test_a_killed_redacted_run_leaves_no_text_either(project: Project):
    project.write("bot.py", BOT + "\nimport os\ntold = answer\ndef answer(question):\n"
                  "    if 'prose' in question:\n        os._exit(9)\n    return told(question)\n")  # fmt: skip
    run(project, "--rageval-redact", "-n", "1", "--max-worker-restart", "0")
    assert project.runs
    assert words_kept(project) == {}


def test_by_default_the_beginnings_are_kept_and_everything_for_scoring_again(project: Project):
    run(project)
    records = [record | {"error": None, "reason": None} for record in project.records().values()]
    longest = max(len(text) for record in records for text in texts_of(record) if "word" in text)
    assert longest <= CUT + 1
    assert set(words_kept(project)) <= {
        "reports/cache/judge_cache.sqlite",
        "reports/metrics.json",  # the message of an error, as a cause
        *(
            f"reports/runs/{project.runs[-1].name}/{name}"
            for name in (
                "results.jsonl",
                "report.json",
                "report.html",
                "observations.jsonl",
                "run.log",
                "summary.md",
                "metrics.json",
            )
        ),
    }
    assert WORDS["trace"] in (project.runs[-1] / "observations.jsonl").read_text(encoding="utf-8")


def test_traces_can_be_left_out_and_texts_kept_whole(project: Project):
    project.configure('target = "bot:answer"\nsave_traces = false\nstore_full_text = true')
    run(project)
    assert not [file for file, names in words_kept(project).items() if "trace" in names]
    assert len(project.records()["tell"]["answer"]) > CUT + 1


def test_commands_say_that_a_redacted_run_has_no_texts(project: Project):
    run(project, "--rageval-redact", "--rageval-run-id", "a")
    for command in (["explain", "a", "tell"], ["explain", "a", "raise"], ["compare", "a", "a"], ["export", "a"]):
        result = project.rageval(*command)
        shown = result.stdout.str() + result.stderr.str()
        assert "Traceback" not in shown, command
        assert not [word for word in WORDS.values() if word in shown], command


def texts_of(value: Any) -> list[str]:
    """All strings of a value, at any depth."""
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts_of(one)]
    if isinstance(value, list):
        return [text for one in value for text in texts_of(one)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize(
    "command",
    [
        ("judge", "one", "--judge", "JUDGE"),
        ("judge", "one", "--spot-check", "--second-judge", "JUDGE"),
        ("calibrate", "labels.jsonl", "--judge", "JUDGE"),
        ("judge-check", "--judge", "JUDGE"),
    ],
)
def test_no_command_keeps_judgements_where_texts_are_redacted(
    project: Project, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    project.cases(SOME)
    project.run("--rageval-run-id", "one")
    project.configure('target = "bot:answer"\nredact = true')
    label = {"id": "a", "question": "When?", "answer": "At 90.", "contexts": ["At 100."], "human_pass": False}
    project.write("labels.jsonl", json.dumps(label) + "\n")
    with JudgeServer() as server:
        judge = f"openai:judge-1@{server.url}"
        project.rageval(*(judge if word == "JUDGE" else word for word in command))
        assert server.chats
    assert not [*(project.path / "reports").glob("cache/*.sqlite*")]


def test_a_redacted_rewrite_whose_metric_failed_says_so_without_its_message():
    written: dict[str, Any] = {"question": None, "answer": None, "retrieved_chunks": [], "scores": {}, "error": None}
    record = {"scores": {"mrr": 1.0}, "rewrite": {**written, "metric_errors": {"mrr": None}}}
    view = rewrite_view(record, None, {"rewrite_gap@mrr": {}})
    assert view is not None
    assert list(view.gaps) == [("rewrite_gap@mrr", "no part: the metric failed")]
