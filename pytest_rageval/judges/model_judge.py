"""The judge with a language model: it gets a rubric and fenced material; replies are read strictly, with one retry."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from pytest_rageval.errors import JudgeError, ModelFailure
from pytest_rageval.judges.judge import BaseJudge, Cost, JudgeSpec, sum_costs
from pytest_rageval.judges.judge_reply import read_reply
from pytest_rageval.judges.requests import VERSION, can_join, joint_request
from pytest_rageval.judges.rubrics import rubric_names, rubric_of
from pytest_rageval.judges.rubrics.rubric_file import reply_fields
from pytest_rageval.llm.chat_model import ChatModel, chat_model
from pytest_rageval.llm.chat_protocol import ChatReply, Message
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.json_exchange import (
    Prompt,
    UnreadableReply,
    fenced_prompt,
    new_marker,
)
from pytest_rageval.llm.model_spec import is_pinned
from pytest_rageval.model import Json, Judgement, JudgeRequest, Rubric
from pytest_rageval.text import cut, printable

MOST_TOKENS = 2048
"""Default limit of a reply, doubled for the second try if the first reply was cut off."""

LONGEST_RAW = 4_000
"""Characters of an unreadable reply that are stored and shown to the model again."""

T = TypeVar("T")


def model_judge(spec: JudgeSpec) -> ModelJudge:
    """Create the judge for a language model's spec, as `chat_model` reads it."""
    options = spec.options or EndpointOptions()
    return ModelJudge(chat_model(f"{spec.kind}:{spec.rest}", options), is_joint=options.is_joint)


class AsksModel(BaseJudge):
    """The common part of judges with one language model."""

    heuristic = False
    is_local = False
    takes_turns = True

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self.options = chat.options
        self.notes = chat.notes
        self.is_pinned = is_pinned(chat.model, chat.url)
        self.sampling: Mapping[str, Json] = chat.sampling(chat.max_tokens or MOST_TOKENS)

    async def check(self) -> str | None:
        """Return why this judge is unusable, in one line, or None; costs nothing."""
        return await self._chat.check()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._chat.aclose()


class ModelJudge(AsksModel):
    """A judge that sends each request to a model; belongs to one event loop.

    `identity` names the model with its server, `is_pinned` is True if the name always means the same model. `sampling`
    has the other parameters that replies depend on, `options` the user's among them, `notes` those that the server
    refused. `tariff` is the model's price, `batch_wire` its interface
    for batches, if it has one. `secret` is what fences are derived from, see `new_marker`; a run sets its
    own. `judge_together` is None unless rubrics are to be joined in one request.
    """

    takes_own_rubrics = True
    secret: str | None = None

    def __init__(self, chat: ChatModel, *, is_joint: bool = False) -> None:
        super().__init__(chat)
        self.batch_wire = chat.wire if chat.wire.takes_batches else None
        self.defer_to = chat.defer_to
        self.model = chat.model
        self.identity = chat.identity
        self.tariff = chat.tariff
        self.rubrics = frozenset(rubric_names())
        self.judge_together = self._judgements if is_joint else None
        if is_joint:
            # A judgement that was asked for along with others is another one, with a key of its own.
            self.sampling = {**self.sampling, "joint": VERSION}

    async def judge(self, request: JudgeRequest) -> Judgement:
        """Judge with one request to the model, or two; raise JudgeError."""
        (result,) = await self._judgements([request])
        if isinstance(result, JudgeError):
            raise result
        return result

    async def _judgements(self, requests: Sequence[JudgeRequest]) -> list[Judgement | JudgeError]:
        """Judge an answer by several rubrics with one request; return the judgement or the error of each.

        What cannot be read is asked for again, each rubric alone, once: a single request with the reason. Then it is an
        error of kind invalid_reply with the last reply in `raw`.
        """
        first = await self._ask(requests)

        async def repaired(request: JudgeRequest, result: _Result) -> Judgement | JudgeError:
            if isinstance(result, _DamagedReply):
                (result,) = await self._ask([request], before=result)
            return result.error if isinstance(result, _DamagedReply) else result

        return await asyncio.gather(*map(repaired, requests, first))

    async def _ask(self, requests: Sequence[JudgeRequest], before: _DamagedReply | None = None) -> list[_Result]:
        """Send the requests as one message and read the reply; `before` is the unreadable reply to be repaired."""
        is_joint = self.judge_together is not None and can_join(rubric_of(requests[0]))
        whole = joint_request(requests) if is_joint else requests[0]
        rubric = rubric_of(whole)
        # The conversation goes on: the material stands between the same marks.
        marker = before.marker if before else new_marker(whole.variables, self.secret)
        prompt = render(rubric, whole, marker)
        messages = _messages(prompt, rubric)
        # A joint prompt is not repaired: the damaged part is asked for alone, as if for the first time.
        if before is not None and not is_joint:
            said = (before.error.raw or "").strip()
            # No API takes an empty message.
            messages.append(Message("assistant", said or "(an empty reply)"))
            messages.append(Message("user", repair_prompt(rubric, before.reason)))
        # A joint reply holds one for each rubric.
        most_tokens = self._chat.max_tokens or MOST_TOKENS * len(requests)
        if before is not None and before.is_truncated:
            most_tokens *= 2
        try:
            reply = await self._chat.say(
                messages,
                schema=rubric.schema,
                schema_name=rubric.name,
                max_tokens=most_tokens,
                trial=whole.trial,
            )
        except ModelFailure as failure:
            return [_unanswered(failure, before)] * len(requests)

        bill = [(reply, len(requests))]
        if before is not None:
            bill = [*before.bill, *bill]
        results: list[_Result] = []
        for request in requests:
            try:
                judgement = _read(reply, request, marker, is_joint=is_joint)
                results.append(self._finished(judgement, request, prompt, bill))
            except UnreadableReply as unreadable:
                problems = [unreadable.reason]
                if before is not None and before.reason != unreadable.reason:
                    problems.append(before.reason)
                error = self._unreadable(reply, request, problems, bill)
                if reply.ending == "content_filter":  # the filter would block the same text again
                    results.append(error)
                else:
                    results.append(_DamagedReply(error, unreadable.reason, bill, marker, reply.is_truncated))
        return results

    def _unreadable(self, reply: ChatReply, request: JudgeRequest, problems: Sequence[str], bill: _Bill) -> JudgeError:
        """Return the error for a reply that cannot be read, with its share of the costs."""
        reasons = "; before: ".join(problems)
        message = printable(f"judge {self.model!r}, rubric {request.rubric!r}: no score can be read: {reasons}")
        spent = sum_costs([_share(*each) for each in bill])
        spent["extra"] = {"requests": _requests_in(bill)}
        return JudgeError("invalid_reply", message, cut(reply.text or "", LONGEST_RAW), spent=spent)

    def _finished(self, reply: Judgement, request: JudgeRequest, prompt: Prompt, bill: _Bill) -> Judgement:
        """Complete a judgement by its model and its share of the costs."""
        last, judgements = bill[-1]
        extra = dict(reply.extra)
        if last.model:
            extra["served_model"] = last.model
        if last.build:
            extra["system_fingerprint"] = last.build
        if last.left_out:
            extra["left_out"] = list(last.left_out)
        if len(bill) > 1:
            extra["repaired"] = True
        if any(sharing > 1 for _, sharing in bill):
            extra["requests"] = _requests_in(bill)
        tokens_cached = sum(each.tokens_cached or 0 for each, _ in bill) // judgements
        if tokens_cached:
            extra["tokens_cached"] = tokens_cached
        return replace(
            reply,
            model=self.model,
            prompt_version=request.prompt_version,
            flags=(*prompt.flags, *reply.flags),
            extra=extra,
            **sum_costs([_share(*each) for each in bill]),
        )


_Bill = Sequence[tuple[ChatReply, int]]
"""Replies, each with the number of judgements that share it."""


class _DamagedReply(NamedTuple):
    """A reply to one rubric that cannot be read."""

    error: JudgeError
    reason: str
    bill: _Bill
    marker: str
    is_truncated: bool


_Result = Judgement | JudgeError | _DamagedReply


def _messages(prompt: Prompt, rubric: Rubric) -> list[Message]:
    """Return the instructions, equal in all requests so that servers can cache them, then this request's material."""
    end = len(rubric.instructions)
    instructions = prompt.text[:end]
    material = prompt.text[end:]
    if instructions.strip() and material.strip():
        return [Message("system", instructions.strip() + "\n"), Message("user", material)]
    return [Message("user", prompt.text)]


def _unanswered(failure: ModelFailure, before: _DamagedReply | None) -> JudgeError:
    """Return the error for a request that got no reply, with what an unreadable reply before it cost."""
    if before is None:
        return JudgeError(failure.kind, str(failure), None, failure.status, {})
    message = f"{failure} (asked again, since {before.reason})"
    return JudgeError(failure.kind, message, before.error.raw, failure.status, before.error.spent)


def _read(reply: ChatReply, request: JudgeRequest, marker: str, *, is_joint: bool) -> Judgement:
    """Read the part of a reply that answers a request; raise UnreadableReply."""
    if reply.flaw is not None:
        raise UnreadableReply(reply.flaw)
    claims = len(request.variables["claims"]) if "claims" in request.variables else None
    return read_reply(
        reply.text or "", rubric_of(request), marker, claims, is_joint=is_joint, material=request.variables
    )


def _requests_in(bill: _Bill) -> float:
    """Return how many requests one judgement took: 1/3 is its share of a request for three."""
    return sum(1 / judgements for _, judgements in bill)


def _share(reply: ChatReply, judgements: int) -> Any:
    """Return a reply's cost, divided by the number of judgements in it."""
    if judgements == 1:
        return reply
    tokens_in = None if reply.tokens_in is None else round(reply.tokens_in / judgements)
    tokens_out = None if reply.tokens_out is None else round(reply.tokens_out / judgements)
    cost = None if reply.cost_usd is None else reply.cost_usd / judgements
    return Cost(tokens_in, tokens_out, cost, reply.latency_ms / judgements)


LONGEST_REASON = 500


def render(rubric: Rubric, request: JudgeRequest, marker: str) -> Prompt:
    """Fill the marker and the request's variables into the rubric's prompt, with `fenced_prompt`.

    Raise JudgeError of kind invalid_request if the request lacks a variable.
    """
    lacking = sorted(rubric.variables - set(request.variables))
    if lacking:
        raise JudgeError("invalid_request", f"rubric {rubric.name!r} reads {', '.join(lacking)}: not in the request")
    return fenced_prompt(rubric.prompt, {name: request.variables[name] for name in rubric.variables}, marker)


def repair_prompt(rubric: Rubric, reason: str) -> str:
    """Return the message that follows an unreadable reply: what is wrong with it, and the format to use."""
    problem = printable(" ".join(reason.split()))[:LONGEST_REASON]
    fields = ", ".join(reply_fields(rubric.schema))
    return (
        f"Your reply could not be read: {problem}.\n"
        "Judge as you did; only the form was wrong. Reply once more with one JSON object and nothing else: no code "
        f"fence, no text around it. Its fields: {fields}."
    )
