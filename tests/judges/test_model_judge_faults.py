"""The judge that is a model where servers fail, cannot be reached or cost too much."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fault_server import hangs, resets, status
from judge_server import JudgeServer
from model_judges import GOOD, KNOWN, a_judge, a_request, failure_of, judged

from pytest_rageval.llm.endpoint_options import Budget

# ── faults ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "fault",
    [
        status(429, retry_after="0"),
        *map(status, (408, 409, 425, 500, 502, 503, 504, 529)),
        status(200, b'{"error": {"code": 429, "message": "slow down"}}', retry_after="0"),
        status(200, b'{"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}'),
        resets,
    ],
)
def test_what_may_pass_is_tried_again(kind: str, fault: Any):
    with JudgeServer(fault, GOOD) as server:
        (said,) = judged(a_judge(server, kind))
    assert said.scores == {"groundedness": 4.0}
    assert len(server.chats) == 2


@pytest.mark.parametrize(
    ("fault", "kind_of_error", "times"),
    [
        (status(429), "rate_limited", 2),
        (hangs, "timeout", 2),
        (resets, "reset", 2),
        (status(401), "http_4xx", 1),
        (status(429, b'{"error": {"type": "insufficient_quota", "message": "pay"}}'), "http_4xx", 1),
        (status(200, b'{"error": {"code": 503, "message": "busy"}}'), "http_5xx", 2),
        (status(302, location="http://elsewhere.example/"), "invalid_response", 1),
        (status(200, b""), "empty", 1),
        (status(200, b"[" * 100_000), "invalid_json", 1),
        (status(200, b'{"x": NaN}'), "invalid_json", 1),
        (status(200, b"null"), "invalid_response", 1),
        (status(200, b'{"choices": []}'), "invalid_response", 1),
        (status(200, b'{"choices": [{"message": {"content": 4}}]}'), "invalid_response", 1),
        (status(200, b'{"choices": [null], "content": [null]}'), "invalid_response", 1),
        (status(200, b'{"error": {"message": "model is loading"}}'), "invalid_response", 1),
    ],
)
def test_a_fault_that_stays_is_a_typed_error(kind: str, fault: Any, kind_of_error: str, times: int):
    with JudgeServer(fault) as server:
        failure = failure_of(a_judge(server, kind, retries=1, timeout=1.5 if kind_of_error == "timeout" else 20.0))
    assert failure.kind == kind_of_error
    assert len(server.chats) == times


@pytest.mark.parametrize("usage", [{"prompt_tokens": -1}, {"prompt_tokens": "9"}, {"prompt_tokens": True}, [], 7, None])
def test_a_usage_that_is_no_number_of_tokens_is_unknown(usage: object):
    body = {"choices": [{"message": {"content": json.dumps(GOOD)}}], "usage": usage}
    with JudgeServer(status(200, json.dumps(body).encode())) as server:
        (said,) = judged(a_judge(server))
    assert (said.tokens_in, said.tokens_out) == (None, None)


# ── before anything is judged ─────────────────────────────────────────────────────────────────────────────────


def test_a_judge_that_can_be_asked_has_no_problem_and_nothing_is_paid(kind: str):
    with JudgeServer() as server:
        assert asyncio.run(a_judge(server, kind).check()) is None
    assert server.chats == []
    assert [request.path for request in server.requests] == ["/v1/models"]


# ── money ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_when_the_budget_is_spent_nothing_more_is_asked(kind: str):
    budget = Budget(0.00005)
    with JudgeServer(GOOD, usage=(100, 20)) as server:
        judge = a_judge(server, kind, tariff=KNOWN, budget=budget, concurrency=1)
        failure = failure_of(judge, *(a_request(str(n)) for n in range(6)))
    assert failure.kind == "budget"
    assert len(server.chats) == 2
    assert budget.spent_usd == pytest.approx(2 * (100 * 0.15 + 20 * 0.60) / 1e6)


def test_a_server_that_tells_no_usage_spends_the_budget_all_the_same():
    budget = Budget(1.0)
    with JudgeServer(GOOD, usage=None) as server:
        (said,) = judged(a_judge(server, tariff=KNOWN, budget=budget))
    assert said.cost_usd is None
    assert budget.spent_usd > 0


def test_no_more_requests_are_under_way_than_allowed():
    with JudgeServer(GOOD, delay=0.2) as server:
        judged(a_judge(server, concurrency=4, share=0.5), *(a_request(str(n)) for n in range(8)))
    assert server.most_at_once == 2
