"""Errors of servers: the parameter that they name, and the status that they mean."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_rageval.llm.chat_protocol import Manner, after_refusal
from pytest_rageval.llm.server_error import refusal_in, status_in


def openai_error(message: str = "no", **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, "param": None, **fields}}


@pytest.mark.parametrize(
    ("error", "left_out"),
    [
        (openai_error("Unsupported value: 'temperature' does not support 0.", param="temperature"), "temperature"),
        (openai_error("Unrecognized request argument supplied: seed"), "seed"),
        (openai_error("Invalid schema for response_format 'reply'. See the seed."), "schema"),
        ({"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}, "seed"),
        ({"error": 'json: unknown field "seed"'}, "seed"),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "tools: not supported"}}, "schema"),
    ],
)
def test_the_parameter_that_an_error_is_about_is_left_out(error: Any, left_out: str):
    manner = after_refusal(Manner(), refusal_in(json.dumps(error)))
    assert manner is not None
    assert manner.left_out == (left_out,)


@pytest.mark.parametrize(
    "error",
    [
        openai_error("The prompt is too long. Its text begins with: which temperature, seed and schema?"),
        openai_error("The prompt was filtered.\nIt holds: set the temperature", param="prompt"),
        openai_error("messages[0]: a seedling is no seedy tooling"),
        {"error": {"message": "The room's climate. temperature 0"}},
    ],
)
def test_a_parameter_that_is_merely_mentioned_stays(error: Any):
    assert after_refusal(Manner(), refusal_in(json.dumps(error))) is None


def test_the_limit_gets_its_other_name_where_that_is_asked_for():
    error = openai_error(
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", param="max_tokens"
    )
    manner = after_refusal(Manner(), refusal_in(json.dumps(error)))
    assert manner is not None
    assert manner.limit_name == "max_completion_tokens"


@pytest.mark.parametrize(
    ("status", "data", "meant"),
    [
        (200, openai_error(code=429), 429),
        (200, openai_error(type="overloaded_error"), 529),
        (200, {"error": {"code": 8, "status": "RESOURCE_EXHAUSTED", "message": "later"}}, 429),
        (200, openai_error(), 200),
        (200, {"error": "loading"}, 200),
        (200, {"choices": [{"message": {"content": '"error"'}}]}, 200),
        (429, openai_error(type="insufficient_quota", code="insufficient_quota"), 402),
        (400, openai_error(code=429), 400),
        (500, openai_error("failed to parse grammar", code=500, type="server_error"), 400),
        (500, openai_error("JSON schema conversion failed:\nUnrecognized schema: {}", code=500), 400),
        (500, openai_error("Failed to initialize samplers: failed to parse grammar", type="server_error"), 400),
        (500, {"error": "invalid JSON schema in format"}, 400),
        (500, {"detail": "response_format of type json_schema is not supported"}, 400),
        (500, {"object": "error", "message": "Compiling the grammar failed", "code": 500}, 400),
        (500, openai_error("CUDA out of memory", code=500), 500),
        (500, openai_error('The model failed. It says: "the schema is invalid"', code=500), 500),
        (500, openai_error("The tool server cannot be reached", code=500), 500),
        (503, openai_error("no grammar can be parsed now", code=503), 503),
    ],
)
def test_a_reply_means_the_status_of_its_error(status: int, data: Any, meant: int):
    assert status_in(status, json.dumps(data).encode()) == meant


@pytest.mark.parametrize(
    "body", [b"", b'"error"', b"[" * 100_000 + b'"error"', b'{"error": \xff}', b'{"error": {"code": 1}']
)
def test_a_body_that_cannot_be_read_means_its_own_status(body: bytes):
    assert status_in(200, body) == 200
