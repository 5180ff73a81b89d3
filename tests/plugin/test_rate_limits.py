"""Runs against systems and judges behind token buckets: each ends, and nothing is lost or asked twice."""

from __future__ import annotations

import random
import re
from concurrent.futures import Future

import pytest
from bucket_server import Bucket, BucketServer
from project import Project, a_case

from pytest_rageval.http.served_rate import ServedRate, allowance
from pytest_rageval.plugin.display.progress_line import tally_text
from pytest_rageval.run.prefetch import Prefetcher
from pytest_rageval.run.scoring import Observed

pytestmark = pytest.mark.reliability("API faults", "rate limits and refused calls")

HOW = ("pytest", "-n 2", "run", "--workers 2")


def configure(project: Project, server: BucketServer, in_flight: int, more: str = "") -> None:
    project.configure(
        f"""
        target = "{server.url}"
        judge = "openai:judge-1@{server.url}/v1"
        judge_cache = "off"
        concurrency = {in_flight}
        judge_concurrency = {in_flight}
        retries = 0
        metrics.enabled = ["retrieval", "groundedness"]
        {more}
        """
    )


def run(project: Project, how: str) -> int:
    """The exit code of a run."""
    if how in ("pytest", "-n 2"):
        return int(project.run(*how.split()[how == "pytest" :], "-p", "no:randomly").ret)
    workers = ("--workers", "2") if how == "--workers 2" else ()
    return int(project.rageval("run", *workers).ret)


def faults_of(project: Project, server: BucketServer, cases: int) -> list[str]:
    """What went wrong: a case that did not pass, was lost, asked or judged twice, or against a Retry-After."""
    outcomes = project.outcomes()
    faults = [f"{key} {outcome}" for key, outcome in outcomes.items() if outcome != "passed"]
    if len(outcomes) != cases:
        faults.append(f"{len(outcomes)} of {cases} cases have a record")
    for name, tap in (("asked", server.asked), ("judged", server.judged)):
        if len(tap.served) != cases:
            faults.append(f"{len(tap.served)} of {cases} cases were {name}")
        faults += [f"{case} was {name} {times} times" for case, times in tap.served.items() if times != 1]
        if tap.broken:
            faults.append(f"{tap.broken} requests were {name} before their Retry-After")
    return faults


def a_bucket(chance: random.Random, least_rate: float = 1) -> Bucket:
    rate = chance.uniform(least_rate, 50)
    return Bucket(rate, chance.randint(1, 20), chance.choice(["none", "seconds", "date", "nonsense"]))


def faults_behind_buckets(project: Project, seed: int, how: str, cases: int, least_rate: float) -> list[str]:
    """Run behind the buckets of a seed; return what went wrong, each time with the buckets."""
    chance = random.Random(seed)
    unlimited = Bucket(10_000, 10_000)
    asked, judged = chance.choice([(1, 0), (0, 1), (1, 1)])
    server = BucketServer(
        a_bucket(chance, least_rate) if asked else unlimited, a_bucket(chance, least_rate) if judged else unlimited
    )
    in_flight = chance.choice([1, 2, 5, 16, 64])
    project.cases(
        [
            a_case(f"q{number}", question=f"Question {number}: at how many degrees does water boil?")
            for number in range(cases)
        ]
    )
    said = f"seed {seed}, {how}, {in_flight} in flight, {server.asked.bucket}, {server.judged.bucket}"
    with server:
        configure(project, server, in_flight)
        run(project, how)
    return [f"{said}: {fault}" for fault in faults_of(project, server, cases)]


@pytest.mark.parametrize("seed", range(4))
def test_every_case_is_asked_and_judged_once_behind_any_bucket(project: Project, seed: int):
    assert faults_behind_buckets(project, seed, "pytest", 24, 8) == []


@pytest.mark.child_process
@pytest.mark.parametrize("how", HOW[1:])
def test_workers_behind_a_bucket_lose_nothing_either(project: Project, how: str):
    assert faults_behind_buckets(project, HOW.index(how), how, 24, 8) == []


@pytest.mark.torture
@pytest.mark.timeout(1200)
@pytest.mark.child_process
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("seed", range(100, 125))
def test_many_buckets_in_every_way_to_run(project: Project, seed: int, how: str):
    assert faults_behind_buckets(project, seed, how, 40, 1) == []


def test_the_rest_of_a_refused_run_is_told_with_what_the_server_allows():
    served = ServedRate()
    for number in range(5):
        served.note_success(float(number))
    assert served.recent is None, "a server that refuses nothing has no pace of its own"
    served.note_refusal(5.0)
    for number in range(11):
        served.note_success(5 + number / 5)
    assert served.recent == pytest.approx(5)
    assert allowance("the judge", 5.0, 600) == "the judge allows about 5 a second; 2 min left"
    assert allowance("the system", 0.2, 12) == "the system allows about 12 a minute; 60 s left"


def test_nothing_is_told_of_what_a_server_allows_before_it_was_measured():
    served = ServedRate()
    served.note_refusal(5.0)
    for number in range(20):
        served.note_success(5 + number / 2488)
    assert served.recent is None, "a burst after a refusal is no pace"
    served.note_success(7.0)
    assert served.recent == pytest.approx(21 / 2, rel=0.1)


def test_progress_names_what_the_judge_allows_while_cases_wait(project: Project):
    said: set[str] = set()
    observed = Prefetcher.observed

    def watched(prefetcher: Prefetcher, future: Future[Observed]) -> Observed:
        said.add(re.sub(r"\d+", "N", tally_text(prefetcher.tally)))
        return observed(prefetcher, future)

    project.cases([a_case(f"q{number}") for number in range(40)])
    with BucketServer(Bucket(10_000, 10_000), Bucket(10, 1)) as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Prefetcher, "observed", watched)
        configure(project, server, 8)
        project.run("-p", "no:randomly")
    assert "asked N, judged N, in flight N, the judge allows about N a second; N s left" in said


@pytest.mark.parametrize("who", ["system", "judge"])
def test_a_server_that_takes_nothing_ends_the_run_after_patience(project: Project, who: str):
    taken, nothing = Bucket(10_000, 10_000), Bucket(0.001, 0)
    project.cases([a_case(f"q{number}") for number in range(20)])
    with BucketServer(*((nothing, taken) if who == "system" else (taken, nothing))) as server:
        configure(project, server, 4, "rate_limit_patience = 1.0")
        project.run("-p", "no:randomly")
    assert set(project.outcomes().values()) == {"error"}
    for record in project.records().values():
        assert record["error"]["kind"] == ("rate_limited" if who == "system" else "judge_rate_limited")
        assert "no call there succeeded within rate_limit_patience (1 s)" in record["error"]["message"]


def test_requests_per_minute_spaces_the_questions_to_the_system(project: Project):
    project.cases([a_case(f"q{number}") for number in range(11)])
    with BucketServer(Bucket(10_000, 10_000)) as server:
        configure(project, server, 16, "requests_per_minute = 600")
        project.run("-p", "no:randomly")
    assert server.asked.last - server.asked.first > 0.95
    assert set(project.outcomes().values()) == {"passed"}


def test_a_function_behind_a_rate_limit_is_called_again(project: Project):
    project.write(
        "limited.py",
        """
import bot

class Refused(Exception):
    status_code = 429

calls = []

def answer(question):
    calls.append(question)
    if len(calls) % 2:
        raise Refused("slow down")
    return bot.answer(question)
""",
    )
    project.cases([a_case(f"q{number}") for number in range(6)])
    project.configure('target = "limited:answer"')
    project.run("-p", "no:randomly")
    assert set(project.outcomes().values()) == {"passed"}
    timings = [record["latency"] for record in project.records().values()]
    assert any(latency["retry_wait_ms"] for latency in timings)
