"""A run with a model for a judge, over real HTTP: asked once, kept, replayed, limited, doubted where it should be."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from judge_server import JudgeServer
from project import SOME, Project, a_case, lines_with

VERSIONED_BOT = """
import bot
def answer(question):
    return bot.answer(question) | {"versions": {"llm": "judge-1"}}
"""


@pytest.fixture
def judged(project: Project) -> Project:
    project.cases(SOME)
    return project


def judge_at(server: JudgeServer, model: str = "judge-1") -> list[str]:
    return ["--rageval-judge", f"openai:{model}@{server.url}"]


def test_default_gates_apply_to_a_models_scores(judged: Project):
    with JudgeServer(score=2) as server:
        result = judged.run(*judge_at(server))
    result.assert_outcomes(passed=1, failed=3)  # of the fourth the system says that it abstained
    result.stdout.fnmatch_lines(["*groundedness is 2, gate >= 3.5 (L5_grounding_fail)*"])
    record = judged.records()["boil"]
    assert record["groundedness"]["score"] == 2
    assert record["groundedness"]["heuristic"] is False
    assert record["cost"]["judge_tokens"] == 2 * 120
    assert record["cost"]["judge_cost_usd"] is None
    result.stdout.fnmatch_lines(["judging: 0 of 6 judgements from the cache, 6 requests (1.5 a case), 720 tokens, *"])


@pytest.mark.parametrize("judge", ["lexical", "embedding:small@{url}"])
@pytest.mark.parametrize(("reported", "score"), [("'retrieved_chunks': []", 0.0), ("", None)])
def test_an_answer_from_an_empty_list_of_chunks_is_unsupported_and_one_from_unknown_chunks_is_not_judged(
    project: Project, reported: str, score: float | None, judge: str
):
    project.write("talk.py", f"def answer(question):\n    return {{'answer': 'It boils at 90 degrees.', {reported}}}\n")
    project.cases([{"id": "boil", "question": "When does water boil?"}])
    with JudgeServer() as server:
        project.run("--rageval-target", "talk:answer", "--rageval-judge", judge.format(url=server.url))
    assert (project.records()["boil"]["groundedness"] or {}).get("score") == score


def test_figures_of_cost_are_those_of_all_trials(judged: Project):
    with JudgeServer() as server:
        result = judged.run(*judge_at(server), "-k", "boil", "--rageval-repeat", "3")
        asked = len(server.chats)
    assert asked == 6
    result.stdout.fnmatch_lines(["judging: 0 of 6 judgements from the cache, 6 requests (6 a case), 720 tokens, *"])
    cost = judged.metrics()["volatile"]["cost"]
    assert (cost["judgements"], cost["judgements_cached"], cost["judge_total_tokens"]) == (6, 0, 720)


def test_where_a_judge_decided_that_an_answer_declines_the_case_says_so(project: Project):
    project.write("talk.py", "def answer(question):\n    return 'A colleague will call you back.'\n")
    project.cases([{"id": "gym", "question": "When does the gym open?", "answerable": False}])
    with JudgeServer() as server:
        result = project.run("--rageval-target", "talk:answer", *judge_at(server))
    assert project.records()["gym"]["abstention"]["decided_by"] == "judge"
    result.stdout.fnmatch_lines(["*judge      no abstention, by the judge: if that is wrong, have the system send*"])


@pytest.mark.parametrize("judge", ["lexical", "none"])
def test_where_phrasing_alone_decided_a_gate_the_case_says_so_and_the_project_can_name_its_bots_refusals(
    project: Project, judge: str
):
    project.write("talk.py", "def answer(question):\n    return 'A colleague will call you back.'\n")
    project.cases([{"id": "gym", "question": "When does the gym open?", "answerable": False}])
    result = project.run("--rageval-target", "talk:answer", "--rageval-judge", judge)
    result.stdout.fnmatch_lines(["*abstention_accuracy is 0, gate >= 1 (abstention_fail)*"])
    result.stdout.fnmatch_lines(
        ["*phrasing   no abstention, by the wording of the answer alone: if that is wrong,*abstention.phrases*"]
    )
    assert project.records()["gym"]["abstention"]["decided_by"] == "phrasing"
    project.configure("", '[tool.rageval.abstention]\nphrases = ["will call you back"]')
    project.run("--rageval-target", "talk:answer", "--rageval-judge", judge).assert_outcomes(passed=1)
    record = project.records()["gym"]
    assert (record["abstention"]["abstained"], record["abstention"]["decided_by"]) == (True, "phrasing")


def test_together_one_request_judges_an_answer_and_the_run_says_how_many(judged: Project):
    judged.configure('target = "bot:answer"\njudge_requests = "together"')
    with JudgeServer() as server:
        result = judged.run(*judge_at(server))
        assert len(server.chats) == 3  # of the fourth the system says that it abstained
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["judging: 0 of 6 judgements from the cache, 3 requests (0.75 a case), 3?? tokens, *"])
    assert judged.records()["boil"]["cost"]["judge_requests"] == 1


@pytest.mark.parametrize(("score", "asked"), [(4, 3), (2, 1)])
def test_a_score_near_to_its_gate_is_judged_thrice(judged: Project, score: float, asked: int):
    judged.configure('target = "bot:answer"\njudge_repeats = "near-gate"')  # the gates are at 3.5, a step is 1
    with JudgeServer(score=score) as server:
        judged.run(*judge_at(server), "-k", "boil")
        assert len(server.chats) == 2 * asked


def test_the_fences_of_a_run_are_made_with_its_own_secret(judged: Project):
    with JudgeServer() as server:
        for _ in range(2):
            judged.run(*judge_at(server), "-k", "boil", "--rageval-judge-cache", "refresh")
        of_one, of_another = server.chats[:2], server.chats[2:]
    secrets = {path.read_text() for path in judged.path.glob("reports/runs/*/judge_secret")}
    assert len(secrets) == 2
    assert {chat.body for chat in of_one}.isdisjoint(chat.body for chat in of_another)


@pytest.mark.parametrize("how", [[], ["-n", "2"]])
def test_a_second_run_asks_nothing(judged: Project, how: list[str]):
    with JudgeServer() as server:
        judged.run(*judge_at(server), *how).assert_outcomes(passed=4)
        metrics, asked = judged.stable_metrics(), len(server.chats)
        result = judged.run(*judge_at(server), *how)
        assert len(server.chats) == asked
    result.stdout.fnmatch_lines(["judging: 6 of 6 judgements from the cache, 0 tokens, $0.0000 spent"])
    assert judged.stable_metrics() == metrics
    assert judged.metrics()["volatile"]["cache_hit_rate"] == 1


def test_a_replay_needs_no_server(judged: Project):
    with JudgeServer() as server:
        spec = judge_at(server)
        judged.run(*spec).assert_outcomes(passed=4)
        metrics = judged.stable_metrics()
    judged.run(*spec, "--rageval-judge-cache", "replay").assert_outcomes(passed=4)
    assert judged.stable_metrics() == metrics


def test_a_replay_of_an_official_model_needs_no_key(judged: Project):
    result = judged.run("--rageval-judge", "openai:gpt-4o-2024-08-06", "--rageval-judge-cache", "replay")
    result.assert_outcomes(passed=1, errors=3)
    result.stdout.fnmatch_lines(["*judge_cache_miss: no judgement is stored for question*"])


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("openai:gpt-4o-2024-08-06", "*OPENAI_API_KEY is not set*"),
        ("openai:judge-1@http://127.0.0.1:9", "*judge 'judge-1'*http://127.0.0.1:9*refused*"),
    ],
)
def test_a_missing_key_or_server_is_said_before_anything_is_asked(judged: Project, judge: str, said: str):
    result = judged.run("--rageval-judge", judge)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])
    assert not judged.runs


def test_an_unreadable_reply_is_an_error_with_the_reply_kept(judged: Project):
    with JudgeServer("I would give this 4 or 5.") as server:
        judged.run(*judge_at(server), "-k", "boil").assert_outcomes(errors=1)
    record = judged.records()["boil"]
    assert record["error"]["kind"] == "judge_invalid_reply"
    assert record["error"]["raw"] == "I would give this 4 or 5."
    assert record["scores"] == {}
    found = judged.metrics()["metrics"]["groundedness"]
    assert (found["mean"], found["n_scored"], found["n_error"], found["n_expected"]) == (None, 0, 1, 1)


def test_a_limit_of_cost_needs_a_price(judged: Project):
    with JudgeServer() as server:
        result = judged.run(*judge_at(server), "--rageval-max-cost", "1")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["*--rageval-max-cost: the price of 'judge-1' is not known*"])
        assert not server.chats


def test_what_makes_a_judge_doubtful_is_said(judged: Project):
    judged.write("versioned.py", VERSIONED_BOT)
    judged.configure('target = "versioned:answer"\njudge_temperature = 0.7')
    with JudgeServer() as server:
        result = judged.run(*judge_at(server))
    said = ["judge judge-1 is not pinned: *", "the judge's temperature is 0.7, not 0: *", "judge-1 judges itself: *"]
    result.stdout.fnmatch_lines(said)


@pytest.mark.parametrize(
    ("llm", "judge", "served", "said"),
    [
        ("examiner", "deployment", "examiner-2026-03-01",
         "examiner judges itself (deployment is served by examiner-2026-03-01): *"),
        ("gpt-4o-mini", "gpt-4.1", None, "gpt-4.1 judges gpt-4o-mini, a model of its own family, *"),
    ],
)  # fmt: skip
def test_a_judge_that_is_the_system_under_a_served_name_or_of_its_family_is_said(
    judged: Project, llm: str, judge: str, served: str | None, said: str
):
    judged.write("versioned.py", VERSIONED_BOT.replace("judge-1", llm))
    judged.configure('target = "versioned:answer"')
    with JudgeServer(served=served) as server:
        result = judged.run(*judge_at(server, judge))
    result.stdout.fnmatch_lines([said])


def test_the_model_that_wrote_uploaded_answers_is_the_systems_own(judged: Project):
    judged.cases([a_case("boil")])
    answer = {"id": "boil", "answer": "Water boils at 100 degrees.", "model_name": "gpt-4o", "retrieved_chunks": []}
    judged.write("answers.jsonl", json.dumps(answer) + "\n")
    with JudgeServer() as server:
        result = judged.run("--rageval-target", "answers:answers.jsonl", *judge_at(server, "gpt-4o-2024-08-06"))
    result.stdout.fnmatch_lines(["gpt-4o judges itself: *"])
    assert judged.config()["observed"]["llm"] == "gpt-4o"


def test_what_the_server_says_that_it_is_stands_in_the_configuration_and_a_change_is_said(judged: Project):
    with JudgeServer(served="m-2026-01") as server:
        judged.run(*judge_at(server), "--rageval-update-baseline", "--rageval-run-id", "before")
        before = judged.config()
        server.served = "m-2026-06"
        result = judged.run(*judge_at(server), "--rageval-judge-cache", "refresh", "--rageval-run-id", "later")
        after = judged.config()
    assert (before["observed"]["judge"], after["observed"]["judge"]) == ("m-2026-01", "m-2026-06")
    assert before["config_hash"] == after["config_hash"]
    result.stdout.fnmatch_lines(["*its server says that it is m-2026-06, and said m-2026-01 for the baseline*"])
    compared = judged.rageval("compare", "before", "later")
    assert lines_with(compared, "observed.judge")


def test_judgements_by_models_of_several_names_are_said_once(judged: Project):
    with JudgeServer(served="m-2026-01") as server:
        judged.run(*judge_at(server), "-k", "boil")
        server.served = "m-2026-06"
        asked = len(server.chats)
        result = judged.run(*judge_at(server))
        assert len(server.chats) - asked == 4, "a served model is no part of a key"
    assert len(lines_with(result, "the server called its model m-2026-01 and m-2026-06")) == 1
    assert judged.config()["observed"]["judge"] == "m-2026-01, m-2026-06"


def test_an_edited_rubric_is_asked_anew(judged: Project):
    shipped = files("pytest_rageval.judges.rubrics").joinpath("correctness.toml").read_text(encoding="utf-8")
    with JudgeServer() as server:
        judged.run(*judge_at(server))
        asked = len(server.chats)
        judged.write("own/correctness.toml", shipped + "\n# with a remark\n")
        judged.configure('target = "bot:answer"\nrubrics = "own"')
        judged.run(*judge_at(server)).assert_outcomes(passed=4)
        assert len(server.chats) == asked + 3  # groundedness is asked as before


def test_a_wrong_answer_fails_by_correctness_and_its_drop_by_a_default_gate(judged: Project):
    judged.configure('target = "bot:answer"\nknown_failures = "report"')
    judged.cases([a_case(f"boil-{number}", f"Boiling point of water, asked {number} times?") for number in range(6)])
    with JudgeServer(score=5) as server:
        assert judged.run(*judge_at(server), "--rageval-update-baseline", "--rageval-judge-cache", "off").ret == 0
    with JudgeServer(score=3) as server:
        arguments = ["--rageval-judge", f"openai:judge-1@{server.url}", "--rageval-judge-cache", "off"]
        result = judged.run(*arguments, "--rageval-ignore-invariants")
    result.assert_outcomes(failed=2, xfailed=6, passed=1)
    tags = {gate["tag"] for gate in judged.records()["boil-0"]["verdict"]["failed_gates"]}
    assert tags == {"L5_grounding_fail", "L5_wrong_answer"}
    gates = {gate["metric"]: gate for gate in judged.metrics()["gates"]}
    assert (gates["correctness"]["passed"], gates["correctness"]["decided_by"]) == (False, "one-sided p")


EXAMINER = """
import pytest

class Examiner:
    model = "examiner/1"
    async def score_groundedness(self, answer, context):
        return 1.0

@pytest.fixture(scope="session"{arguments})
def {name}():
    return Examiner()
"""


def an_examiner(arguments: str = "", name: str = "rag_judge") -> str:
    return EXAMINER.format(arguments=arguments, name=name)


@pytest.mark.parametrize(
    ("files_", "place"),
    [
        ({"conftest.py": an_examiner()}, "conftest.py::rag_judge"),
        ({"evalcases/conftest.py": an_examiner(', name="rag_judge"', "my_judge")}, "evalcases/conftest.py::rag_judge"),
        ({"mine.py": an_examiner(), "conftest.py": "from mine import rag_judge\n"}, "mine::rag_judge"),
    ],
)
def test_a_judge_of_a_fixture_is_named_as_that_and_not_as_the_configured_one(
    judged: Project, files_: dict[str, str], place: str
):
    for name, text in files_.items():
        judged.write(name, text)
    judged.run()
    config = judged.config()
    assert config["judge"] == {"fixture": [place]}
    assert judged.metrics()["judge"]["model"] == "examiner/1"
    assert f"fixture {place}" in (judged.runs[-1] / "summary.md").read_text(encoding="utf-8").replace("\\", "")


@pytest.mark.child_process
def test_with_workers_a_judge_of_a_fixture_has_the_same_name_and_the_configured_one_is_not_asked_for(judged: Project):
    judged.write("conftest.py", an_examiner())
    hashes = []
    for how in ([], ["-n", "2"], ["-k", "boil"]):
        judged.run("--rageval-judge", "openai:m@http://127.0.0.1:1", *how)
        hashes.append(judged.config()["config_hash"])
    assert len(set(hashes)) == 1


def test_where_a_fixture_judges_some_files_alone_both_judges_are_named(judged: Project):
    judged.cases([a_case("boil")], "evalcases/sub/b.jsonl")
    judged.write("evalcases/sub/conftest.py", an_examiner())
    judged.run()
    described = judged.config()["judge"]
    assert (described["model"], described["fixture"]) == ("lexical/4", ["evalcases/sub/conftest.py::rag_judge"])


def test_a_judge_of_a_fixture_beside_a_test_of_the_users_own_is_named(judged: Project):
    test = '@pytest.mark.rageval("evalcases/a.jsonl", select="boil")\ndef test_it(eval_case, rageval):\n    '
    judged.write("test_own.py", an_examiner() + "\n\n" + test + "rageval.evaluate(eval_case)\n")
    judged.run("test_own.py")
    assert judged.config()["judge"] == {"fixture": ["test_own.py::rag_judge"]}


def test_a_spot_check_by_the_same_served_model_is_said_to_be_none(judged: Project):
    with JudgeServer(served="m-2026-01") as server, JudgeServer(served="m-2026-01") as other:
        judged.run(*judge_at(server), "--rageval-run-id", "one")
        second = f"openai:another@{other.url}"
        result = judged.rageval("judge", "one", "--spot-check", "--second-judge", second)
    assert lines_with(result, "WARNING: both judges were served by m-2026-01")
