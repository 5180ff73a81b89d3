"""The judge that is a language model: shown a rubric and fenced material, read strictly, asked twice at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_rageval.errors import JudgeError, ModelFailure
from pytest_rageval.judges.judge import JudgeSpec, spent
from pytest_rageval.judges.model_reply import JudgeReply, read_reply
from pytest_rageval.judges.rubrics import rubric_names, rubric_of
from pytest_rageval.judges.rubrics.rubric_lookup import reply_fields
from pytest_rageval.llm.chat_model import ChatModel, Exchange
from pytest_rageval.llm.chat_protocol import Message
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.fencing import Prompt, fenced_prompt, new_marker
from pytest_rageval.llm.json_reply import UnreadableReply
from pytest_rageval.llm.model_identity import is_pinned
from pytest_rageval.llm.model_spec import chat_model
from pytest_rageval.model import Json, Judgement, JudgeRequest, Rubric
from pytest_rageval.text import cut, printable

MOST_TOKENS = 2048
"""Of a reply, unless the options say otherwise; twice as many where the first one was cut off."""

LONGEST_RAW = 4_000
"""Characters of an unreadable reply that are kept, and shown to the model again."""


def model_judge(spec: JudgeSpec) -> ModelJudge:
    """The judge of a language model, as `chat_model` reads its spec."""
    return ModelJudge(chat_model(f"{spec.kind}:{spec.rest}", spec.options or EndpointOptions()))


class ModelJudge:
    """Puts each request to a model, for one event loop.

    `identity` names the model with its server; `is_pinned` tells whether the model's name means the same model for
    ever; `sampling`, what replies depend on beside it; `options`, what of that the user set; `notes`, what the server
    would not be told; `tariff`, its price.
    """

    heuristic = False
    takes_own_rubrics = True
    is_local = False

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self.model = chat.model
        self.identity = chat.identity
        self.is_pinned = is_pinned(chat.model, chat.url)
        self.tariff = chat.tariff
        self.options = chat.options
        self.rubrics = frozenset(rubric_names())
        self._most_tokens = chat.max_tokens or MOST_TOKENS
        self.sampling: Mapping[str, Json] = chat.sampling(self._most_tokens)

    @property
    def notes(self) -> list[str]:
        return self._chat.notes

    async def judge(self, request: JudgeRequest) -> Judgement:
        """One judgement, of one request to the model or of two.

        Where the first reply cannot be read, the model is told what was wrong with it and asked once more; after that
        it is a JudgeError of kind invalid_reply with the last reply in `raw`.
        """
        rubric = rubric_of(request)
        marker = new_marker(request.variables)
        prompt = render(rubric, request, marker)
        asked = _messages(rubric, prompt)
        claims = _number_of_claims(request)
        first = await self._say(asked, rubric, self._most_tokens, request.trial)
        try:
            return self._judgement(request, rubric, prompt, _read(first, rubric, marker, claims), [first])
        except UnreadableReply as unreadable:
            reason = unreadable.reason
            if first.reply.ending == "content_filter":  # the same text would be held back again
                raise self._unreadable(rubric, first, reason) from None
        asked += [Message("assistant", _shown(first)), Message("user", repair_prompt(rubric, reason))]
        most_tokens = self._most_tokens * (2 if first.reply.is_truncated else 1)
        try:
            second = await self._say(asked, rubric, most_tokens, request.trial)
        except JudgeError as error:
            raise JudgeError(error.kind, f"{error} (asked again, since {reason})", _raw(first)) from None
        try:
            return self._judgement(request, rubric, prompt, _read(second, rubric, marker, claims), [first, second])
        except UnreadableReply as unreadable:
            before = f"; before: {reason}" if unreadable.reason != reason else ""
            raise self._unreadable(rubric, second, unreadable.reason + before) from None

    async def check(self) -> str | None:
        """Why this judge cannot be asked, in one line, or None; costs nothing."""
        return await self._chat.check()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._chat.aclose()

    async def _say(self, messages: Sequence[Message], rubric: Rubric, max_tokens: int, trial: int) -> Exchange:
        try:
            return await self._chat.say(
                messages, schema=rubric.schema, schema_name=rubric.name, max_tokens=max_tokens, trial=trial
            )
        except ModelFailure as failure:
            raise JudgeError(failure.kind, str(failure), status=failure.status) from None

    def _unreadable(self, rubric: Rubric, exchange: Exchange, reason: str) -> JudgeError:
        message = f"judge {self.model!r}, rubric {rubric.name!r}: no score can be read: {reason}"
        return JudgeError("invalid_reply", printable(message), _raw(exchange))

    def _judgement(
        self, request: JudgeRequest, rubric: Rubric, prompt: Prompt, reply: JudgeReply, exchanges: Sequence[Exchange]
    ) -> Judgement:
        last = exchanges[-1]
        served = {
            "served_model": last.reply.model,
            "system_fingerprint": last.reply.build,
            "left_out": list(last.left_out),
            "repaired": len(exchanges) > 1,
        }
        return Judgement(
            rubric=rubric.name,
            scores=reply.scores,
            scale=rubric.scale,
            reasoning=reply.reasoning,
            supported_claims=reply.supported_claims,
            unsupported_claims=reply.unsupported_claims,
            model=self.model,
            prompt_version=request.prompt_version,
            **spent(exchanges),
            flags=(*prompt.flags, *reply.flags),
            extra={**reply.extra, **{name: value for name, value in served.items() if value}},
        )


def _messages(rubric: Rubric, prompt: Prompt) -> list[Message]:
    """The instructions, which are the same in every request and so can be cached, then this request's material."""
    instructions, material = prompt.text[: len(rubric.instructions)], prompt.text[len(rubric.instructions) :]
    if not (instructions.strip() and material.strip()):
        return [Message("user", prompt.text)]
    return [Message("system", instructions.strip() + "\n"), Message("user", material)]


def _number_of_claims(request: JudgeRequest) -> int | None:
    claims = request.variables.get("claims")
    return len(claims) if isinstance(claims, list) else None


def _read(exchange: Exchange, rubric: Rubric, marker: str, claims: int | None) -> JudgeReply:
    if (flaw := exchange.reply.flaw) is not None:
        raise UnreadableReply(flaw)
    return read_reply(exchange.reply.text or "", rubric, marker, claims)


def _raw(exchange: Exchange) -> str:
    return cut(exchange.reply.text or "", LONGEST_RAW)


def _shown(exchange: Exchange) -> str:
    # No API takes an empty message.
    return _raw(exchange).strip() or "(an empty reply)"


LONGEST_REASON = 500


def render(rubric: Rubric, request: JudgeRequest, marker: str) -> Prompt:
    """The rubric's prompt with marker and variables filled in, as `fenced_prompt` does it.

    A variable that the request lacks is a JudgeError of kind invalid_request.
    """
    lacking = sorted(rubric.variables - set(request.variables))
    if lacking:
        raise JudgeError("invalid_request", f"rubric {rubric.name!r} reads {', '.join(lacking)}: not in the request")
    return fenced_prompt(rubric.prompt, {name: request.variables[name] for name in rubric.variables}, marker)


def repair_prompt(rubric: Rubric, reason: str) -> str:
    """The one message that follows an unreadable reply: what was wrong with it, and what is asked for once more."""
    wrong = printable(" ".join(reason.split()))[:LONGEST_REASON]
    fields = ", ".join(reply_fields(rubric.schema))
    return (
        f"Your reply could not be read: {wrong}.\n"
        "Judge as you did; only the form was wrong. Reply once more with one JSON object and nothing else: no code "
        f"fence, no text around it. Its fields: {fields}."
    )
