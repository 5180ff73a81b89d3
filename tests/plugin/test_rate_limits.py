"""Runs against systems and judges behind token buckets: each ends, and nothing is lost or asked twice."""

from __future__ import annotations

import random

import pytest
from bucket_server import Bucket, BucketServer
from project import Project, a_case

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


def check(project: Project, server: BucketServer, cases: int, said: str) -> None:
    """Every case was answered and judged once, none is an error, and no Retry-After was broken."""
    assert set(project.outcomes().values()) == {"passed"}, said
    assert len(project.outcomes()) == cases, said
    for tap in (server.asked, server.judged):
        assert len(tap.served) == cases, said
        assert set(tap.served.values()) == {1}, said
        assert tap.broken == 0, said


def a_bucket(chance: random.Random, least_rate: float = 1) -> Bucket:
    rate = chance.uniform(least_rate, 50)
    return Bucket(rate, chance.randint(1, 20), chance.choice(["none", "seconds", "date", "nonsense"]))


def try_one(project: Project, seed: int, how: str, cases: int, least_rate: float) -> None:
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
    check(project, server, cases, said)


@pytest.mark.parametrize("seed", range(4))
def test_every_case_is_asked_and_judged_once_behind_any_bucket(project: Project, seed: int):
    try_one(project, seed, "pytest", 24, 8)


@pytest.mark.child_process
@pytest.mark.parametrize("how", HOW[1:])
def test_workers_behind_a_bucket_lose_nothing_either(project: Project, how: str):
    try_one(project, HOW.index(how), how, 24, 8)


@pytest.mark.torture
@pytest.mark.timeout(1200)
@pytest.mark.child_process
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("seed", range(100, 125))
def test_many_buckets_in_every_way_to_run(project: Project, seed: int, how: str):
    try_one(project, seed, how, 40, 1)
