"""The judge with a language model: it gets a rubric and fenced material; replies are read strictly, with one retry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pytest_rageval.errors import JudgeError, ModelFailure
from pytest_rageval.judges.judge import JudgeSpec, sum_costs
from pytest_rageval.judges.rubrics import rubric_names, rubric_of
from pytest_rageval.judges.rubrics.rubric_file import reply_fields
from pytest_rageval.llm.chat_model import ChatModel, Exchange, chat_model
from pytest_rageval.llm.chat_protocol import Message
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.json_exchange import (
    QUOTES_THE_MARKER,
    SURROGATE,
    Prompt,
    UnreadableReply,
    fenced_prompt,
    new_marker,
    number_of,
    quoted_json,
    quotes_marker,
    stated_object,
    value_in_words,
    value_of,
)
from pytest_rageval.llm.model_spec import is_pinned
from pytest_rageval.model import NOTHING, Json, Judgement, JudgeRequest, Rubric
from pytest_rageval.text import counted, cut, printable

MOST_TOKENS = 2048
"""Default limit of a reply, doubled for the second try if the first reply was cut off."""

LONGEST_RAW = 4_000
"""Characters of an unreadable reply that are stored and shown to the model again."""

T = TypeVar("T")


def model_judge(spec: JudgeSpec) -> ModelJudge:
    """Create the judge for a language model's spec, as `chat_model` reads it."""
    return ModelJudge(chat_model(f"{spec.kind}:{spec.rest}", spec.options or EndpointOptions()))


class AsksModel:
    """The common part of judges with one language model."""

    heuristic = False
    is_local = False

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self.options = chat.options
        self.is_pinned = is_pinned(chat.model, chat.url)
        self.sampling: Mapping[str, Json] = chat.sampling(chat.max_tokens or MOST_TOKENS)

    @property
    def notes(self) -> list[str]:
        return self._chat.notes

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
    refused. `tariff` is the model's price.
    """

    takes_own_rubrics = True

    def __init__(self, chat: ChatModel) -> None:
        super().__init__(chat)
        self.model = chat.model
        self.identity = chat.identity
        self.tariff = chat.tariff
        self.rubrics = frozenset(rubric_names())

    async def judge(self, request: JudgeRequest) -> Judgement:
        """Judge with one request to the model, or two.

        If the first reply is unreadable, tell the model why and try once more; after that, raise JudgeError of kind
        invalid_reply with the last reply in `raw`.
        """
        rubric = rubric_of(request)
        marker = new_marker(request.variables)
        prompt = render(rubric, request, marker)
        listed = request.variables.get("claims")
        claims = len(listed) if isinstance(listed, list) else None
        exchanges: list[Exchange] = []
        reply = await ask_twice(
            self._chat,
            _messages(rubric, prompt),
            lambda text: read_reply(text, rubric, marker, claims),
            lambda reason: repair_prompt(rubric, reason),
            exchanges,
            f"judge {self.model!r}, rubric {rubric.name!r}: no score can be read",
            schema=rubric.schema,
            schema_name=rubric.name,
            trial=request.trial,
        )
        last = exchanges[-1]
        served = {
            "served_model": last.reply.model,
            "system_fingerprint": last.reply.build,
            "left_out": list(last.left_out),
            "repaired": len(exchanges) > 1,
        }
        return replace(
            reply,
            model=self.model,
            prompt_version=request.prompt_version,
            **sum_costs(exchanges),
            flags=(*prompt.flags, *reply.flags),
            extra={**reply.extra, **{name: value for name, value in served.items() if value}},
        )


def _messages(rubric: Rubric, prompt: Prompt) -> list[Message]:
    """Return the instructions, equal in all requests so that servers can cache them, then this request's material."""
    instructions, material = prompt.text[: len(rubric.instructions)], prompt.text[len(rubric.instructions) :]
    if not (instructions.strip() and material.strip()):
        return [Message("user", prompt.text)]
    return [Message("system", instructions.strip() + "\n"), Message("user", material)]


async def ask_twice(
    chat: ChatModel,
    messages: Sequence[Message],
    read: Callable[[str], T],
    repair: Callable[[str], str],
    exchanges: list[Exchange],
    problem: str,
    **arguments: Any,
) -> T:
    """Return what `read` makes of the reply; on UnreadableReply, tell the model why and try once more.

    repair     returns the message to the model for the reason
    exchanges  collects each exchange
    problem    beginning of the JudgeError after two unreadable replies, which has the last one in `raw`
    arguments  further arguments of `chat.say`
    """
    most, reason, raw = chat.max_tokens or MOST_TOKENS, "", None
    while True:
        try:
            exchange = await chat.say(messages, max_tokens=most, **arguments)
        except ModelFailure as failure:
            again = f" (asked again, since {reason})" if reason else ""
            raise JudgeError(failure.kind, f"{failure}{again}", raw, status=failure.status) from None
        exchanges.append(exchange)
        reply, raw, before = exchange.reply, cut(exchange.reply.text or "", LONGEST_RAW), reason
        try:
            if reply.flaw is not None:
                raise UnreadableReply(reply.flaw)
            return read(reply.text or "")
        except UnreadableReply as unreadable:
            reason = unreadable.reason
        if before or reply.ending == "content_filter":  # the filter would block the same text again
            first = f"; before: {before}" if before not in ("", reason) else ""
            raise JudgeError("invalid_reply", printable(f"{problem}: {reason}{first}"), raw)
        # No API takes an empty message.
        repairs = Message("assistant", raw.strip() or "(an empty reply)"), Message("user", repair(reason))
        messages = [*messages, *repairs]
        most *= 2 if reply.is_truncated else 1


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


# ── its replies ───────────────────────────────────────────────────────────────────────────────────────────────

LONGEST_TEXT = 4_000
"""Characters of the reasoning, of a claim and of any other text."""

MOST_ENTRIES = 200
"""Entries of a list."""


def read_reply(text: str, rubric: Rubric, marker: str, claims: int | None = None) -> Judgement:
    """Read the one JSON object of a reply, alone or in a code fence; raise UnreadableReply if there is none.

    Texts are cut and can be encoded; `flags` name doubts about the reply, `extra` holds the other fields.

    A score is a number on the rubric's schema and scale: 4, 4.5, "4" or "4/5", where the denominator is the top of the
    scale. For a boolean schema it is true or false; for an array, the share of true verdicts out of `claims`, which
    `extra` keeps in order as `verdicts`. Other fields of the schema may be missing or malformed, which is flagged,
    unless the rubric has no scores: then they are the judgement, and required ones must be there.
    Reasoning may be called an explanation. Fields outside the schema are dropped.
    """
    stated = stated_object(text)
    if "reasoning" in rubric.schema["properties"] and "reasoning" not in stated and "explanation" in stated:
        stated["reasoning"] = stated["explanation"]
    verdicts = {
        name: _verdicts(name, value_of(stated, name), claims)
        for name in rubric.scores.values()
        if rubric.schema["properties"][name]["type"] == "array"
    }
    scores = {
        metric: sum(verdicts[name]) / len(verdicts[name]) if name in verdicts else _score(stated, name, rubric)
        for metric, name in rubric.scores.items()
    }
    fields, misfits = _other_fields(stated, rubric)
    fields |= verdicts
    if misfits and not rubric.scores:
        raise UnreadableReply(cut("; ".join(misfits), 300))
    if quotes_marker(text, stated, marker):
        misfits.append(QUOTES_THE_MARKER)
    reasoning = str(fields.pop("reasoning", ""))
    has_lists = "supported_claims" in fields and "unsupported_claims" in fields
    supported, unsupported = (_claims(fields, name) for name in ("supported_claims", "unsupported_claims"))
    if has_lists and (contradiction := _contradiction(scores, rubric.scale, supported, unsupported)) is not None:
        misfits.append(contradiction)
    return Judgement(
        rubric.name, scores, rubric.scale, reasoning, supported, unsupported, extra=fields, flags=tuple(misfits)
    )


FULL, HIGH, LOW = 1.0, 0.8, 0.4
"""Shares of a scale: full marks allow no unsupported claim, high marks no majority, low marks require one."""


def _contradiction(
    scores: Mapping[str, float], scale: tuple[float, float], supported: tuple[str, ...], unsupported: tuple[str, ...]
) -> str | None:
    """Return in a line how the lists of claims contradict the reply's one score, or None."""
    if len(scores) != 1 or not (supported or unsupported):
        return None
    (score,) = scores.values()
    share = (score - scale[0]) / (scale[1] - scale[0])
    is_too_high = (share >= FULL and unsupported) or (share >= HIGH and len(unsupported) > len(supported))
    is_too_low = share <= LOW and not unsupported
    if not (is_too_high or is_too_low):
        return None
    return (
        f"its lists contradict its score: {score:g} of {scale[1]:g}, with {counted(len(supported), 'claim')} supported "
        f"and {len(unsupported)} unsupported"
    )


# ── its scores ────────────────────────────────────────────────────────────────────────────────────────────────


def _score(stated: Mapping[str, Json], name: str, rubric: Rubric) -> float:
    """Return the score in a field as a number on the rubric's scale."""
    value = value_of(stated, name)
    schema = rubric.schema["properties"][name]
    if schema["type"] == "boolean":
        return float(_boolean(name, value))
    low, high = schema.get("minimum", rubric.scale[0]), schema.get("maximum", rubric.scale[1])
    number = number_of(name, value, low, high)
    if not rubric.scale[0] <= number <= rubric.scale[1]:
        raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected {low:g} to {high:g}')
    steps = (number - rubric.scale[0]) / (rubric.step or 1.0)
    if rubric.step is not None and abs(steps - round(steps)) >= 1e-9:
        expected = "a whole number" if rubric.step == 1 else f"a multiple of {rubric.step:g}"
        raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected {expected}')
    if schema["type"] == "integer" and number != int(number):
        raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected a whole number')
    if "enum" in schema and number not in schema["enum"]:
        allowed = ", ".join(f"{choice:g}" for choice in schema["enum"])
        raise UnreadableReply(f'"{name}" is {quoted_json(value)}, expected one of {allowed}')
    return float(number) or 0.0  # never -0.0


def _verdicts(name: str, value: Json, claims: int | None) -> list[bool]:
    """Return whether each claim is supported, in the order of their numbers, which must run from 1 to `claims`."""
    if not isinstance(value, list) or not value:
        raise UnreadableReply(f'"{name}" is {value_in_words(value)}, expected a list with a verdict on each claim')
    verdicts: dict[Json, bool] = {}
    for entry in value:
        if not isinstance(entry, Mapping):
            raise UnreadableReply(f'"{name}" holds {value_in_words(entry)}, expected an object for each claim')
        number = int(number_of("number", value_of(entry, "number"), 1, claims or len(value)))
        if number in verdicts:
            raise UnreadableReply(f'"{name}" has two verdicts on claim {number}')
        verdicts[number] = _boolean("supported", value_of(entry, "supported"))
    if len(verdicts) != (claims or len(value)):
        raise UnreadableReply(f'"{name}" holds {len(verdicts)} verdicts, expected {claims}, one on each claim')
    return [verdicts[number] for number in sorted(verdicts)]


def _boolean(name: str, value: Json) -> bool:
    if value is True or value == "true":
        return True
    if value is False or value == "false":
        return False
    raise UnreadableReply(f'"{name}" is {value_in_words(value)}, expected true or false')


# ── its other fields ──────────────────────────────────────────────────────────────────────────────────────────


def _other_fields(stated: Mapping[str, Json], rubric: Rubric) -> tuple[dict[str, Json], list[str]]:
    """Return the schema's fields other than scores, cut to size, and notes on missing or malformed ones."""
    fields: dict[str, Json] = {}
    misfits = []
    required = rubric.schema.get("required", ())
    for name, schema in rubric.schema["properties"].items():
        if name in rubric.scores.values():
            continue
        if name not in stated:
            if name in required:
                misfits.append(f'"{name}" is missing')
        elif _fits(stated[name], schema):
            fields[name] = _bounded(stated[name])
        else:
            misfits.append(f'"{name}" is {value_in_words(stated[name])}, expected {schema.get("type")}')
    return fields, misfits


def _claims(fields: dict[str, Json], name: str) -> tuple[str, ...]:
    claims = fields.pop(name, ())
    return tuple(claim for claim in claims if isinstance(claim, str) and claim.strip())


def _fits(value: Json, schema: Mapping[str, Json]) -> bool:
    """Return True if a value has the schema's type, range and choice; lists are checked entry by entry."""
    if "enum" in schema and value not in schema["enum"]:
        return False
    match schema.get("type"):
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer" | "number" as kind:
            is_number = isinstance(value, int if kind == "integer" else int | float) and not isinstance(value, bool)
            return is_number and schema.get("minimum", value) <= value <= schema.get("maximum", value)
        case "array":
            return isinstance(value, list) and all(_fits(entry, schema.get("items", NOTHING)) for entry in value)
        case "object":
            properties = schema.get("properties", NOTHING)
            return isinstance(value, dict) and all(
                _fits(value[name], properties[name]) if name in value else name not in schema.get("required", ())
                for name in properties
            )
        case _:
            return True


def _bounded(value: Json) -> Json:
    """Return the value with its texts cut and encodable, and its lists and objects cut."""
    if isinstance(value, str):
        return SURROGATE.sub("\ufffd", cut(value, LONGEST_TEXT))
    if isinstance(value, list):
        return [_bounded(entry) for entry in value[:MOST_ENTRIES]]
    if isinstance(value, dict):
        return {_bounded(name): _bounded(entry) for name, entry in list(value.items())[:MOST_ENTRIES]}
    return value
