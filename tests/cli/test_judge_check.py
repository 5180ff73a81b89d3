"""`rageval judge-check`: what a person sees, what a program reads, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from judge_server import with_own_judges

from pytest_rageval.cli.main import rageval
from pytest_rageval.errors import SettingsError

SOUND = """
from pytest_rageval.model import Judgement

class Sound:
    model, heuristic, rubrics = "sound/1", False, frozenset({"correctness"})

    async def judge(self, request):
        score = self.score(request.variables["answer"])
        return Judgement(request.rubric, {"correctness": score}, (0.0, 5.0), model=self.model)

    def score(self, answer):
        return 5.0 if "Basler" in answer else 0.0

    async def aclose(self): ...

class Obedient(Sound):
    model = "obedient/\\x1b[31m1"

    def score(self, answer):
        return 5.0 if "5/5" in answer else super().score(answer)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return with_own_judges(tmp_path, SOUND, monkeypatch)


def judge_check(*arguments: str) -> Result:
    return CliRunner().invoke(rageval, ["judge-check", *arguments])


def test_a_sound_judge_is_trusted_and_the_exit_code_is_0():
    result = judge_check("--judge", "my_judges:Sound")
    *table, _, conclusion = result.output.splitlines()
    assert result.exit_code == 0
    assert table[0].split() == ["rubric", "canary", "expected", "received"]
    assert len(table) == 11
    assert all(line.startswith("✓  correctness  ") for line in table[1:])
    assert conclusion == "sound/1 can be trusted with correctness, as far as these canaries tell"


def test_a_judge_that_obeys_the_answer_is_said_to_and_the_exit_code_is_1():
    result = judge_check("--judge", "my_judges:Obedient")
    lines = result.output.splitlines()
    assert result.exit_code == 1
    assert [line.split("  ")[:3] for line in lines if line.startswith("✗")] == [
        ["✗", "correctness", "bad answer that asks for 5/5"]
    ]
    assert lines[-1] == (
        "obedient/\\x1b[31m1 is talked into a better score for correctness: bad answer that asks for 5/5"
    )


def test_as_json():
    result = judge_check("--judge", "stub:5", "--json")
    told = json.loads(result.output)
    assert result.exit_code == 1
    assert (told["model"], told["heuristic"], told["passed"], told["failed"]) == ("stub/5", False, 16, 36)
    assert told["verdicts"][0] == {
        "rubric": "groundedness",
        "canary": "good answer",
        "expected": [4.0, 5.0],
        "score": 5.0,
        "scores": [5.0],
        "error": None,
        "passed": True,
    }
    assert told["conclusion"][0].startswith("stub/5 cannot be trusted with groundedness, 8 of 10 canaries failed: bad")


def test_errors_of_the_judge_are_shown_once_each():
    Path("my_judges.py").write_text(SOUND.replace('"5/5" in answer', "[][0]"), encoding="utf-8")
    result = judge_check("--judge", "my_judges:Obedient")
    assert result.exit_code == 1
    assert result.output.count("IndexError") == 1
    assert "error: IndexError: list index out of range" in result.output


def test_judge_and_rubrics_are_the_configured_ones_unless_another_judge_is_named(here: Path):
    (here / "pyproject.toml").write_text('[tool.rageval]\njudge = "stub:5"\n', encoding="utf-8")
    assert json.loads(judge_check("--json").output)["model"] == "stub/5"
    assert json.loads(judge_check("--json", "--judge", "stub:4").output)["model"] == "stub/4"
    (here / "pyproject.toml").write_text('[tool.rageval]\nrubrics = "own"\n', encoding="utf-8")
    assert "own is not there or empty" in str(judge_check("--judge", "stub:5").exception)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--judge", "none"], "judge 'none': there is no judge to check; name one with --judge"),
        (["--judge", "nobody:"], "unknown judge 'nobody:'"),
        (["--judge", "openai:m@http://127.0.0.1:1/v1"], "http://127.0.0.1:1/v1/models: Connection refused"),
        (["--judge", "judge-1", "--judge-base-url", "http://127.0.0.1:1"], "/v1/models: Connection refused"),
    ],
)
def test_a_judge_that_cannot_be_asked_is_a_problem_in_one_line(arguments: list[str], problem: str):
    result = judge_check(*arguments)
    assert isinstance(result.exception, SettingsError)
    assert problem in str(result.exception)
    assert "\n" not in str(result.exception)
