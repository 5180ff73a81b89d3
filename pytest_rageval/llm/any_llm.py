"""Models behind any-llm-sdk: Bedrock, Vertex AI and its other providers.

Its providers have their own clients, keys and addresses; requests and replies use OpenAI's format. Everything else
(pace, budget, retries, reading of replies) is the same as for other models.

Source: any-llm-sdk 1.40, `AnyLLM.create` and `acompletion`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from pytest_rageval.errors import SettingsError
from pytest_rageval.http.attempts import RetryRule, make_attempts
from pytest_rageval.http.call_limit import CallLimit
from pytest_rageval.http.client import HttpReply
from pytest_rageval.http.failures import REPEATABLE_STATUS, HttpFailure, is_refusal, kind_of_status, longest_wait
from pytest_rageval.io.environment_secrets import secrets_of_environment
from pytest_rageval.io.masking import Mask
from pytest_rageval.llm.chat_model import LARGEST_REPLY, ChatModel, judge_limit
from pytest_rageval.llm.credentials import JUDGE_TOKEN
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.openai import OpenAiWire
from pytest_rageval.llm.server_error import status_in
from pytest_rageval.text import excerpt, printable

SCHEME = "any-llm"
_SPEC = re.compile(r"(?P<provider>[\w-]+)/(?P<model>\S+?)(?:@(?P<url>https?://\S*))?")
_STATUS_OF_ERROR: Mapping[str, int] = {
    "RateLimitError": 429,
    "AuthenticationError": 401,
    "MissingApiKeyError": 401,
    "InvalidRequestError": 400,
    "UnsupportedParameterError": 400,
    "ContextLengthExceededError": 400,
    "ContentFilterError": 400,
    "InsufficientFundsError": 402,
    "ModelNotFoundError": 404,
    "UpstreamProviderError": 502,
    "GatewayTimeoutError": 504,
}
"""Status by class of any-llm's errors, for those without a server's status."""


class AnyLlmWire(OpenAiWire):
    """A provider of any-llm, whose name replaces the address unless the user gives one."""

    takes_batches = False

    def __init__(self, provider: str, url: str | None) -> None:
        self.api = f"{SCHEME}/{provider}"
        self.chat_url = url or f"{SCHEME}://{provider}"
        self.models_url = ""
        self.headers = {}
        self.key_name = ""


def any_llm_model(_kind: str, rest: str, options: EndpointOptions) -> ChatModel:
    """Return the model of `PROVIDER/MODEL` or `PROVIDER/MODEL@URL`; raise SettingsError in one line.

    Replay sends no requests and works without any-llm installed.
    """
    parts = _SPEC.fullmatch(rest)
    if parts is None:
        raise SettingsError("a model of any-llm is spelt any-llm:PROVIDER/MODEL, as in any-llm:bedrock/MODEL")
    if options.headers:
        raise SettingsError("judge_options.headers: any-llm takes none; use judge_options.extra_body")
    url = parts["url"] or options.base_url
    provider = None if options.is_replay else _provider(parts["provider"], url)
    wire = AnyLlmWire(parts["provider"], url)
    host = urlsplit(wire.chat_url).netloc
    limit_of = judge_limit(options)
    client = AnyLlmClient(provider, RetryRule(options.retries, timeout=options.timeout), lambda: limit_of(host))
    return ChatModel(wire, parts["model"], options, client=client)


def _provider(name: str, url: str | None) -> Any:
    """Create any-llm's provider with its retries off: they are done here."""
    try:
        from any_llm import AnyLLM
        from any_llm.exceptions import UnsupportedParameterError
    except ModuleNotFoundError:
        raise SettingsError("any-llm-sdk is not installed; pip install 'pytest-rageval[any-llm]'") from None
    token = os.environ.get(JUDGE_TOKEN) if url is not None else None
    create = partial(AnyLLM.create, name, api_key=token, api_base=url, unified_exceptions=True)
    try:
        try:
            return create(max_retries=0)
        except UnsupportedParameterError:
            return create()
    except Exception as error:  # noqa: BLE001  a provider's SDK may raise anything: a missing package, key or region
        # An SDK may quote the key that it refuses.
        reason = excerpt(_mask().text(str(error)))
        raise SettingsError(f"any-llm cannot ask {printable(name)!r}: {reason}") from None


class AnyLlmClient:
    """A client for one provider of any-llm, with the interface of `SlottedClient`."""

    def __init__(self, provider: Any, rule: RetryRule, limit: Callable[[], CallLimit]) -> None:
        """Keep the provider; `limit` returns the limit of the running event loop."""
        self._provider = provider
        self._rule = rule
        self._limit = limit

    async def request(
        self, method: str, url: str, *, json: Any, tokens: int = 0, before_send: Callable[[], None] | None = None
    ) -> HttpReply:
        """Return the completion as JSON in OpenAI's format; raise HttpFailure, as an HTTP request does."""
        name = f"{method} {url}"

        def attempt(seconds_left: float) -> Awaitable[HttpReply]:
            return self._attempt(name, json, min(self._rule.timeout, seconds_left))

        return await make_attempts(attempt, self._limit(), self._rule, name, tokens=tokens, before_send=before_send)

    async def aclose(self) -> None:
        """Close the provider's own client, if it has one with a `close`."""
        client = getattr(self._provider, "client", None)
        close = getattr(client, "close", None)
        if not callable(close):
            return
        closing = close()
        if inspect.isawaitable(closing):
            await closing

    async def _attempt(self, name: str, body: Mapping[str, Any], seconds: float) -> HttpReply:
        try:
            async with asyncio.timeout(seconds):
                completion = await self._provider.acompletion(**body)
            content: bytes = completion.model_dump_json().encode()
        except TimeoutError:
            message = f"{name}: no complete reply within {seconds:.3g} s (timeout)"
            raise HttpFailure("timeout", message, is_retryable=True) from None
        except Exception as error:  # noqa: BLE001  any-llm leaves some errors of the providers' SDKs unconverted
            raise _failure(name, error) from None
        if len(content) > LARGEST_REPLY:
            raise HttpFailure("too_large", f"{name}: the reply is larger than {LARGEST_REPLY:,} bytes")
        return HttpReply(200, {}, content)


def _failure(name: str, error: Exception) -> HttpFailure:
    """Convert an error of any-llm to a failure whose body looks like that of an OpenAI server."""
    message = _mask().text(str(getattr(error, "message", "") or error))
    param = getattr(error, "param", None) or getattr(error, "parameter_name", None)
    error_fields = {"message": message, "param": param, "code": getattr(error, "code", None)}
    body = json.dumps({"error": error_fields}, default=str)
    status = getattr(error, "status_code", None) or _STATUS_OF_ERROR.get(type(error).__name__)
    if not isinstance(status, int):
        kind = _kind_of(error)
        return HttpFailure(kind, f"{name}: {excerpt(message)}", is_retryable=kind != "invalid_response", body=body)
    meant = status_in(status, body.encode())
    retry_after = longest_wait(str(getattr(error, "retry_after", "")))
    return HttpFailure(
        kind_of_status(meant),
        f"{name}: status {meant}: {excerpt(message)}",
        status=meant,
        is_retryable=meant in REPEATABLE_STATUS,
        is_refusal=is_refusal(meant, retry_after, body),
        retry_after=retry_after,
        body=body,
    )


def _kind_of(error: Exception) -> str:
    """Return the kind of an error without a status, by the names of its class and of its cause's class."""
    names = f"{type(error).__name__} {type(getattr(error, 'original_exception', None)).__name__}"
    if "Timeout" in names:
        return "timeout"
    if "Connect" in names:
        return "connect"
    return "invalid_response"


def _mask() -> Mask:
    return Mask(secrets_of_environment(os.environ))
