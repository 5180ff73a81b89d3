"""A model as DeepEval wants it, that asks the way our judges ask."""

from __future__ import annotations

import asyncio
import copy
import functools
from importlib import import_module
from typing import Any

from pytest_rageval.errors import JudgeError, ModelFailure
from pytest_rageval.judges.model.model_judge import LONGEST_RAW, MOST_TOKENS
from pytest_rageval.llm.chat_model import ChatModel, Exchange
from pytest_rageval.llm.chat_protocol import Message
from pytest_rageval.llm.json_reply import stated_object
from pytest_rageval.model import Json
from pytest_rageval.text import cut, excerpt


def model_for(chat: ChatModel, exchanges: list[Exchange], trial: int = 0) -> Any:
    """A `DeepEvalBaseLLM` that asks `chat` and notes each exchange."""
    return _model_class()(chat, exchanges, trial)


@functools.cache
def _model_class() -> Any:
    base: Any = import_module("deepeval.models").DeepEvalBaseLLM

    class AskingModel(base):  # type: ignore[misc] # because DeepEval is no dependency: its classes are Any
        """One model, for one judgement."""

        def __init__(self, chat: ChatModel, exchanges: list[Exchange], trial: int) -> None:
            self._chat, self._exchanges, self._trial = chat, exchanges, trial
            super().__init__(chat.model)

        def load_model(self) -> Any:
            return self

        def get_model_name(self) -> str:
            return self._chat.model

        def generate(self, prompt: str, schema: Any = None) -> Any:
            return asyncio.run(self.a_generate(prompt, schema))

        async def a_generate(self, prompt: str, schema: Any = None) -> Any:
            """The reply's text, or where a schema is given, the reply as an instance of it."""
            return await asked(self._chat, self._exchanges, prompt, schema, self._trial)

    return AskingModel


async def asked(chat: ChatModel, exchanges: list[Exchange], prompt: str, schema: Any, trial: int = 0) -> Any:
    """One reply, read strictly by the schema (a pydantic model); one that does not fit is asked for once more."""
    messages = [Message("user", prompt)]
    reply_schema = None if schema is None else strict(schema.model_json_schema())
    reason = ""
    for _ in range(2):
        try:
            exchange = await chat.say(
                messages,
                schema=reply_schema,
                schema_name=getattr(schema, "__name__", "reply"),
                max_tokens=chat.max_tokens or MOST_TOKENS,
                trial=trial,
            )
        except ModelFailure as failure:
            raise JudgeError(failure.kind, str(failure), status=failure.status) from None
        exchanges.append(exchange)
        text = exchange.reply.text or ""
        if (reason := exchange.reply.flaw or "") == "":
            try:
                return text if schema is None else schema.model_validate(stated_object(text))
            except ValueError as misfit:
                reason = _first_line(misfit)
        shown = text[:LONGEST_RAW].strip() or "(an empty reply)"
        form = "" if schema is None else " with one JSON object and nothing else"
        again = f"Your reply could not be read: {reason}. Reply once more{form}."
        messages = [*messages, Message("assistant", shown), Message("user", again)]
    raise JudgeError(
        "invalid_reply", f"model {chat.model!r}: the reply cannot be read: {reason}", cut(text, LONGEST_RAW)
    )


def strict(schema: Json) -> Json:
    """A JSON Schema as servers with strict output want it: every property required, no other allowed."""
    made = copy.deepcopy(schema)
    for part in [made, *made.get("$defs", {}).values()]:
        if part.get("type") == "object":
            part["required"] = list(part.get("properties", {}))
            part["additionalProperties"] = False
    return made


def _first_line(misfit: ValueError) -> str:
    errors = getattr(misfit, "errors", None)
    first = errors(include_input=False)[0] if callable(errors) else {"msg": str(misfit), "loc": ()}
    place = ".".join(str(step) for step in first["loc"])
    return excerpt(f"{place}: {first['msg']}" if place else str(first["msg"]))
