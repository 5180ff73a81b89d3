"""Whatever metrics, hooks and replies give, the run ends in order: all files written, the error named by its origin."""

from __future__ import annotations

import shutil

import pytest
from odd_values import CLASSES, RAISING, VALUES, assert_ended_in_order, assert_refused
from project import Project, a_case

CASES = [a_case("boil"), a_case("freeze", "What is the freezing point?", gold={}, gold_supports=[])]
METRIC = """
from pytest_rageval import NotApplicable, Score, metric
@metric(layer="L5", better="higher", {more})
def own(obs):
    return {value}
def pytest_rageval_metrics(config):
    return [own]
"""


def with_metric(project: Project, value: str, more: str = "") -> None:
    """Give the project a metric that returns this value."""
    project.cases(CASES)
    project.write("conftest.py", CLASSES + METRIC.format(value=value, more=more))


@pytest.mark.parametrize("value", [*VALUES, *RAISING])
def test_an_odd_value_of_a_metric_is_an_error_of_its_cases(project: Project, value: str):
    with_metric(project, (VALUES | RAISING)[value])
    result = project.run()
    assert_ended_in_order(project, result, said="metric own ")
    assert set(project.outcomes().values()) == {"error"}
    assert {record["error"]["kind"] for record in project.records().values()} == {"metric"}


DETAILS = [name for name in VALUES if name not in ("text", "nothing")]


@pytest.mark.parametrize("value", DETAILS)
def test_an_odd_detail_of_a_score_is_an_error_of_its_metric(project: Project, value: str):
    with_metric(project, f"Score(1.0, {{'part': {VALUES[value]}}})")
    result = project.run()
    assert_ended_in_order(project, result, said="metric own: detail.part")


@pytest.mark.parametrize("value", [*VALUES, *RAISING])
def test_an_odd_value_of_a_metric_of_the_run_is_an_error_of_that_metric(project: Project, value: str):
    with_metric(project, (VALUES | RAISING)[value], "run_level=True")
    result = project.run()
    assert_ended_in_order(project, result, said="FAILED rageval-gates::metric own - metric own ")
    metric = project.metrics()["metrics"]["own"]
    assert metric["mean"] is None
    assert metric["n_error"] == len(CASES)
    assert metric["error"]
    assert set(project.outcomes().values()) == {"passed"}


@pytest.mark.parametrize("value", [*VALUES, *RAISING])
def test_an_odd_list_of_metrics_is_wrong_usage(project: Project, value: str):
    if value == "nothing":
        return
    project.cases(CASES)
    hook = f"def pytest_rageval_metrics(config):\n    return {(VALUES | RAISING)[value]}\n"
    project.write("conftest.py", CLASSES + hook)
    assert_refused(project, project.run(), "pytest_rageval_metrics")


DECLARATIONS = {
    "scale": ["(float('nan'), 1)", "(0, float('inf'))", "(1, 0)", "(0, 0)", "(0,)", "5", "None", "('a', 'b')",
              "Mute()", "(0, 10 ** 400)", "(Mute(), 1)"],
    "needs": ["5", "'gold.answer'", "[5]", "Mute()"],
    "gates": ["'own >= 1'", "[None]", "['own >>= 1']"],
    "layer": ["5", "['L5']", "Array()", "Mute()"],
    "better": ["None", "Array()"],
    "aliases": ["'others'", "[1]"],
    "aggregate": ["5"],
    "binary": ["'yes'", "Mute()"],
    "run_level": ["Mute()"],
    "name": ["5", "'Own metric'", "Mute()"],
    "missing": ["5"],
    "terms": ["'formula'"],
    "description": ["5"],
}  # fmt: skip
"""Parts of a declaration that are wrong."""


@pytest.mark.parametrize(
    ("part", "value"), [(part, value) for part, values in DECLARATIONS.items() for value in values]
)
def test_an_odd_declaration_of_a_metric_is_wrong_usage_that_names_metric_and_key(
    project: Project, part: str, value: str
):
    project.cases(CASES)
    given = {"layer": "'L5'", "better": "'higher'"} | {part: value}
    declared = METRIC.replace('layer="L5", better="higher", {more}', ", ".join(f"{k}={v}" for k, v in given.items()))
    project.write("conftest.py", CLASSES + declared.format(value="1.0"))
    word = "gate 'own >>= 1'" if ">>" in value else part
    named = () if part == "name" else ("own",)
    assert_refused(project, project.run(), word, *named)


@pytest.mark.parametrize("function", ["async def own(obs)", "def own()", "def own(obs, other)"])
def test_a_function_that_cannot_be_a_metric_is_wrong_usage(project: Project, function: str):
    project.cases(CASES)
    project.write("conftest.py", METRIC.replace("def own(obs)", function).format(value="1.0", more=""))
    assert_refused(project, project.run(), "metric 'own'")


NO_JSON = ["nan", "generator", "mute", "array", "very huge", "bytes", "cyclic", "deep", "object"]
CONFIG_KEYS = ["run_config['own'] = {value}", "run_config[{value}] = 1"]


@pytest.mark.parametrize("body", CONFIG_KEYS)
@pytest.mark.parametrize(
    "value", ["nan", "generator", "mute", "array", "very huge", "bytes", "cyclic", "deep", "object"]
)
def test_odd_values_for_the_configuration_of_a_run_are_wrong_usage(project: Project, value: str, body: str):
    if "[{" in body and value in ("mute", "array", "cyclic", "deep"):
        return  # no key of a dictionary
    project.cases(CASES)
    hook = f"def pytest_rageval_run_config(run_config):\n    {body.format(value=VALUES[value])}\n"
    project.write("conftest.py", CLASSES + hook)
    assert_refused(project, project.run(), "pytest_rageval_run_config: run_config", "expected")


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ("run_config['settings'] = None", "settings"),
        ("run_config['settings']['k'] = 'many'", "settings"),
        ("del run_config['metrics']", "metrics"),
        ("run_config.clear()", "schema"),
        ("run_config['config_hash'] = 'x'", "config_hash"),
    ],
)
def test_a_hook_may_not_change_what_the_run_says_of_itself(project: Project, body: str, key: str):
    project.cases(CASES)
    project.write("conftest.py", f"def pytest_rageval_run_config(run_config):\n    {body}\n")
    assert_refused(project, project.run(), "pytest_rageval_run_config", repr(key))


CASES_GIVEN = [
    "5", "'boil'", "replace(case, id=5)", "replace(case, id='')", "replace(case, question=None)",
    "replace(case, question=Mute())", "replace(case, tags=5)", "replace(case, tags=['a', 5])",
    "replace(case, category=['x'])", "replace(case, answerable='yes')", "replace(case, gold=None)",
    "replace(case, metadata={'x': object()})", "replace(case, metadata={'x': float('nan')})",
    "replace(case, history=5)", "replace(case, vaults=3)", r"replace(case, id='\ud800')",
]  # fmt: skip


@pytest.mark.parametrize("case", CASES_GIVEN)
def test_an_odd_case_of_a_hook_is_a_problem_of_its_file(project: Project, case: str):
    project.cases(CASES)
    hook = f"def pytest_rageval_case(case):\n    from dataclasses import replace\n    return {case}\n"
    project.write("conftest.py", CLASSES + hook)
    result = project.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    shown = "\n".join(result.outlines)
    assert "INTERNALERROR" not in shown
    assert "Traceback" not in shown
    assert "a.jsonl:1: case 'boil': pytest_rageval_case" in shown


RESULTS = [
    "result.scores['mrr'] = 'high'", "result.scores['mrr'] = float('nan')", "result.scores['mrr'] = Mute()",
    "result.scores[5] = 1.0", "result.scores.clear()", "result.scores['unknown'] = 1.0", "result.scores['mrr'] = 7.0",
    "object.__setattr__(result, 'outcome', 'splendid')", "object.__setattr__(result, 'scores', None)",
    "object.__setattr__(result, 'outcome', 'passed')",
]  # fmt: skip


@pytest.mark.parametrize("body", RESULTS)
def test_what_a_hook_changes_in_a_result_changes_nothing_in_the_run(project: Project, body: str):
    project.cases([a_case("boil")])
    project.write("conftest.py", CLASSES + f"def pytest_rageval_result(item, result):\n    {body}\n")
    result = project.run("--rageval-gate", "mrr >= 0.5")
    assert result.ret in (0, 1)
    assert_ended_in_order(project, result, result.ret)
    assert project.metrics()["metrics"]["mrr"]["mean"] in (1.0, None)


REPLIES = [
    *[f"'versions': {{'llm': {value}}}" for value in
      ("{'name': 'a', 'date': [1]}", "['a', 'b']", "float('nan')", "'x' * 100_000", "True", "10 ** 400", "10 ** 6000",
       "'\\ud800'", "''", "Mute()", "cyclic()", "deep()")],
    "'versions': {'embedding': {}}", "'versions': {'chunker': []}", "'versions': {'prompt': [{}]}",
    "'versions': {'index': {'a': {}}}", "'versions': {'build': {'sha': ['a']}}", "'versions': {'judge': {}}",
    "'versions': 'v1'", "'versions': ['v1']", "'versions': {5: 'v1'}", "'versions': None",
    "'indexing_coverage': {'index_version': {}, 'chunker_version': []}",
    "'indexing_coverage': {'docs_processed': 'many', 'docs_with_0_chunks': {}}",
    "'indexing_coverage': {'docs_processed': float('nan')}", "'indexing_coverage': {'docs_processed': 10 ** 400}",
    "'indexing_coverage': {'docs_processed': 10 ** 299, 'docs_with_0_chunks': 10 ** 298}",
    "'indexing_coverage': {'coverage_by_doc_type': {'md': 5, 'pdf': {'processed': 10 ** 299, 'with_0_chunks': 1}}}",
    "'indexing_coverage': {'coverage_by_doc_type': []}", "'indexing_coverage': {'chunks_skipped_reasons': 'none'}",
    "'indexing_coverage': {'a' * 100_000: 1}", "'indexing_coverage': {'nested': cyclic()}", "'indexing_coverage': []",
    "'usage': {'prompt_tokens': 'many'}", "'usage': {'prompt_tokens': 10 ** 299, 'other': 10 ** 299}",
    "'usage': {'cost': float('inf')}", "'usage': {'cost': 1e308}", "'usage': []", "'usage': {'nested': {'a': [1]}}",
    "'latency': {'retrieval_ms': 1e308}", "'latency': {'retrieval_ms': -1}", "'latency': {'retrieval_ms': '5'}",
    "'latency': {'retrieval_ms': True}", "'latency': []", "'trace': 5", "'trace': {'query_entities': 5}",
    "'folder_selection': 5", "'retrieved_chunks': {}", "'retrieved_chunks': [5]", "'unheard_of': Mute()",
]  # fmt: skip
"""Parts of `debug`, as Python writes them."""
REPLYING = """
def answer(question):
    return {{"answer": "Water boils at 100 degrees at sea level.", "debug": {{{part}}}}}
"""


@pytest.mark.parametrize("part", REPLIES)
def test_odd_parts_of_a_reply_are_read_or_errors_of_their_cases(project: Project, part: str):
    project.cases([a_case("boil", gold_supports=[]), a_case("again", gold_supports=[])])
    project.write("bot.py", CLASSES + REPLYING.format(part=part))
    for face in (project.run, lambda: project.rageval("run")):
        result = face()
        assert result.ret in (0, 1)
        outcomes = set(project.outcomes().values())
        assert_ended_in_order(project, result, int(outcomes != {"passed"}))
        if outcomes == {"error"}:
            messages = [record["error"]["message"] for record in project.records().values()]
            assert all("debug." in message or "the response" in message for message in messages), messages
        shutil.rmtree(project.path / "reports")


TARGET = """
class Target:
    name = {name}
    notes = []
    async def ask(self, request):
        from pytest_rageval import Answer
        return {answer}
    async def aclose(self):
        {close}
@pytest.fixture(scope="session")
def rag_client():
    return Target()
"""
SOUND_TARGET = {"name": "'own'", "answer": "Answer(text='x')", "close": "pass"}
ODD_TARGETS = [
    *[{"name": value} for value in ("5", "Mute()", "None")],
    *[{"close": value} for value in ("raise ValueError('no')", "raise SystemExit(3)", "pytest.skip('no')")],
    *[{"answer": value} for value in
      ("5", "None", "Mute()", "Answer(text=5)", "Answer(text='x', versions=5)", "Answer(text='x', chunks=5)",
       "Answer(text='x', versions={'llm': ['a']})", "Answer(text='x', versions={'llm': object()})",
       "Answer(text='x', usage={'a': Mute()})", "Answer(text='x', indexing_coverage=5)", "Answer(text='x', extra=5)",
       "Answer(text='x', latency={'a': float('nan')})", "Answer(text='x', abstained=Mute())")],
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD_TARGETS, ids=str)
def test_an_odd_target_of_a_fixture_ends_no_run(project: Project, odd: dict[str, str]):
    project.cases(CASES)
    project.write("conftest.py", CLASSES + TARGET.format(**SOUND_TARGET | odd))
    assert_ended_in_order(project, project.run())


JUDGE = """
from pytest_rageval import Judgement
class OwnJudge:
    model = {model}
    heuristic = {heuristic}
    rubrics = {rubrics}
    async def judge(self, request):
        return {judgement}
    async def aclose(self):
        {close}
@pytest.fixture(scope="session")
def rag_judge():
    return OwnJudge()
"""
SOUND_JUDGE = {
    "model": "'own/1'",
    "heuristic": "False",
    "rubrics": "frozenset({'groundedness'})",
    "judgement": "Judgement('groundedness', {'groundedness': 3.0}, scale=(0, 5), model='own/1')",
    "close": "pass",
}
ODD_JUDGES = [
    *[{"model": value} for value in ("5", "Mute()", "None")],
    *[{"heuristic": value} for value in ("Mute()", "'yes'")],
    *[{"rubrics": value} for value in ("5", "None", "['groundedness']", "Mute()")],
    *[{"close": value} for value in ("raise SystemExit(3)", "pytest.skip('no')")],
    *[{"judgement": value} for value in ("5", "None", "Mute()")],
    *[{"judgement": f"Judgement('groundedness', {{'groundedness': 3.0}}, {part})"} for part in
      ("scale=(3, 3)", "scale=(5, 0)", "scale=(0, float('inf'))", "scale=Mute()", "extra=cyclic()", "extra=deep()",
       "scale=(0, 5), extra=5", "scale=(0, 5), flags=5", "scale=(0, 5), prompt_version=5",
       "scale=(0, 5), heuristic=Mute()", "scale=(0, 5), supported_claims=5", "scale=(0, 5), cached='x'")],
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD_JUDGES, ids=str)
def test_an_odd_judge_of_a_fixture_ends_no_run(project: Project, odd: dict[str, str]):
    project.cases([a_case("boil")])
    project.write("conftest.py", CLASSES + JUDGE.format(**SOUND_JUDGE | odd))
    result = project.run("--rageval-gate", "groundedness >= 1")
    assert_ended_in_order(project, result, 0 if "close" in odd else 1)


@pytest.mark.child_process
@pytest.mark.parametrize("value", ["nan", "mute", "cyclic", "SystemExit", "skip", "unspeakable"])
@pytest.mark.parametrize("more", ["", "run_level=True"], ids=["of a case", "of the run"])
def test_odd_values_end_no_run_with_workers(project: Project, value: str, more: str):
    with_metric(project, (VALUES | RAISING)[value], more)
    assert_ended_in_order(project, project.run("-n", "2"), said="metric own ")
