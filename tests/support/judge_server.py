"""A real HTTP server on loopback that speaks as OpenAI, Anthropic and embedding servers do, and says what it is told.

    with JudgeServer({"score": 4, "reasoning": "…"}) as server:
        ...ask server.url...
    assert len(server.chats) == 1

Each chat request gets the next reply, and the last one again and again. A reply is a dict or list (sent as JSON text),
a string (sent as it is), or a behaviour of `fault_server` (a status, a hang …). Without any, each request gets the
smallest reply that fits the schema it brings, with `score` for its numbers.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fault_server import Behaviour, Connection, FaultServer, Received

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Vector = Callable[[str], Sequence[float]]


class JudgeServer(FaultServer):
    """The server. Beside what it is told to reply:

    models         names that GET /v1/models lists
    refuses        name of a parameter → what a 400 says of it: `seed`, `temperature`, `json_schema`, `response_format`…
    refusal        the status of a refusal
    usage          tokens in and out of every reply, None for a server that does not tell
    key            the only key that it takes; others get 401
    delay          seconds before each reply
    finish         finish_reason of OpenAI's kind; Anthropic's stop_reason is made of it
    vector         the embedding of a text
    served         what it says that its model is; a dated name of what was asked for, unless set
    says           a function from a request to the reply, in place of replies in their order
    """

    def __init__(
        self,
        *replies: object,
        score: float = 4,
        models: Sequence[str] = ("judge-1",),
        refuses: Mapping[str, str] | None = None,
        refusal: int = 400,
        usage: tuple[int, int] | None = (100, 20),
        key: str | None = None,
        delay: float = 0.0,
        finish: str = "stop",
        vector: Vector | None = None,
        served: str | None = None,
        says: Callable[[Any], object] | None = None,
    ) -> None:
        super().__init__(self._behave)
        self.replies, self.score, self.models = replies, score, models
        self.refuses, self.usage, self.key, self.delay, self.finish = refuses or {}, usage, key, delay, finish
        self.vector = vector or by_words
        self.served = served
        self.says = says
        self.refusal = refusal
        self.chats: list[Received] = []
        """Requests for a reply, those that were refused among them."""
        self.embeddings: list[Received] = []
        self.most_at_once = 0
        self._answered = 0
        self._at_once = 0

    async def _behave(self, connection: Connection) -> None:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await asyncio.sleep(self.delay)
            await self._route(connection)
        finally:
            self._at_once -= 1

    async def _route(self, connection: Connection) -> None:
        request = connection.request
        path = request.path.partition("?")[0]
        told = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.key is not None and told != self.key:
            await _send(connection, 401, {"error": {"message": f"Incorrect API key provided: {told}"}})
        elif path.endswith("/models"):
            await _send(connection, 200, {"data": [{"id": name} for name in self.models]})
        elif path.endswith("/embeddings"):
            self.embeddings.append(request)
            await self._next(connection, self._embeddings)
        elif path.endswith(("/chat/completions", "/messages")):
            self.chats.append(request)
            await self._chat(connection, _openai if path.endswith("/chat/completions") else _anthropic)
        else:
            await _send(connection, 404, {"error": "no such address"})

    async def _chat(self, connection: Connection, shape: Callable[..., Any]) -> None:
        asked = connection.request.json
        refusal = next((message for name, message in self.refuses.items() if _sends(asked, name)), None)
        if refusal is not None:
            await _send(connection, self.refusal, {"error": {"message": refusal, "type": "invalid_request_error"}})
        else:
            await self._next(connection, shape)

    async def _next(self, connection: Connection, shape: Callable[..., Any]) -> None:
        reply = self.replies[min(self._answered, len(self.replies) - 1)] if self.replies else None
        self._answered += 1
        if callable(reply):
            behave: Behaviour = reply
            await behave(connection)
        elif shape == self._embeddings:
            await _send(connection, 200, self._embeddings(connection.request) if reply is None else reply)
        else:
            if self.says is not None:
                reply = self.says(connection.request.json)
            said = _fitting(connection.request.json, self.score) if reply is None else reply
            await _send(connection, 200, shape(self, connection.request.json, said))

    def _embeddings(self, request: Received) -> Any:
        asked = request.json
        data = [{"index": i, "embedding": list(self.vector(text))} for i, text in enumerate(asked["input"])]
        return {"model": asked["model"], "data": data, "usage": {"prompt_tokens": 5, "total_tokens": 5}}


def by_words(text: str) -> list[float]:
    """Texts with the same words lie near each other: each word is a direction of its own, as far as 64 suffice."""
    vector = [0.01] * 64
    for word in text.lower().replace(".", " ").replace("?", " ").split():
        vector[hashlib.sha256(word.encode()).digest()[0] % 64] += 1.0
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector]


def _openai(server: JudgeServer, asked: Any, said: object) -> Any:
    message = {"role": "assistant", "content": said if isinstance(said, str) else json.dumps(said)}
    reply: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1767225600,
        "model": server.served or f"{asked['model']}-2026-01-01",
        "system_fingerprint": "fp_1",
        "choices": [{"index": 0, "message": message, "finish_reason": server.finish}],
    }
    if server.usage:
        tokens_in, tokens_out = server.usage
        reply["usage"] = {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": sum(server.usage),
        }
    return reply


def _anthropic(server: JudgeServer, asked: Any, said: object) -> Any:
    content: dict[str, object]
    if isinstance(said, str) or "tools" not in asked:
        content = {"type": "text", "text": said if isinstance(said, str) else json.dumps(said)}
    else:
        content = {"type": "tool_use", "id": "t1", "name": asked["tools"][0]["name"], "input": said}
    reply = {
        "model": asked["model"],
        "content": [content],
        "stop_reason": "max_tokens" if server.finish == "length" else "end_turn",
    }
    if server.usage:
        reply["usage"] = {"input_tokens": server.usage[0], "output_tokens": server.usage[1]}
    return reply


async def _send(connection: Connection, status: int, data: Any) -> None:
    await connection.reply(status, json.dumps(data).encode())


def _sends(asked: Any, name: str) -> bool:
    """Does the request hold this parameter, or, as its response_format, this type?"""
    return name in asked or asked.get("response_format", {}).get("type") == name


def _fitting(asked: Any, score: float) -> Any:
    """The smallest value of the schema that a request brings."""
    if "tools" in asked:
        schema = asked["tools"][0]["input_schema"]
    else:
        schema = asked.get("response_format", {}).get("json_schema", {}).get("schema", {})
    return _value(schema, score)


def _value(schema: Any, score: float) -> Any:
    if "enum" in schema:
        numbers = [one for one in schema["enum"] if isinstance(one, int | float) and one <= score]
        return max(numbers) if numbers else schema["enum"][0]
    if schema.get("type") == "object":
        return {name: _value(one, score) for name, one in schema.get("properties", {}).items()}
    if schema.get("type") in ("integer", "number"):
        return min(max(score, schema.get("minimum", score)), schema.get("maximum", score))
    return {"array": [], "boolean": False}.get(schema.get("type"), "because")


def with_own_judges(folder: Path, judges: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write `my_judges.py`, and make its folder the current one, from which it is imported anew."""
    (folder / "my_judges.py").write_text(judges, encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "my_judges", raising=False)
    return folder


PADDING, UNKNOWN, START, END = range(4)
STEEP = 20.0
"""Logits go from -10 to 10 as the share of words that are there goes from 0 to 1."""

CONTRADICTION_FIRST = {
    "id2label": {"0": "contradiction", "1": "entailment", "2": "neutral"},
    "model_type": "deberta-v2",
}
ENTAILMENT_FIRST = {"id2label": {"0": "ENTAILMENT", "1": "NEUTRAL", "2": "CONTRADICTION"}, "model_type": "deberta-v2"}
MINICHECK = {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "model_type": "roberta", "pad_token_id": PADDING}
HHEM_1 = {"id2label": {"0": "LABEL_0"}, "model_type": "deberta-v2"}
HHEM_2 = {"model_type": "HHEMv2Model"}


def a_model(
    folder: Path,
    texts: Sequence[str],
    config: dict[str, Any] | None = None,
    *,
    most_tokens: int = 64,
    place: str = "model.onnx",
    per_token: bool = False,
) -> Path:
    """A folder with a small cross-encoder: it counts which words of the second text stand in the first one.

    Labels, inputs and outputs are those of a kind of published models; it knows the words of these texts.

    `per_token`: it puts out a row of logits for each token, of which the first one's count, and reads one text in which
    the claim follows the word hypothesis.
    """
    import onnx
    from tokenizers.processors import TemplateProcessing

    folder.mkdir(parents=True, exist_ok=True)
    config = {"max_position_embeddings": most_tokens} | (config or CONTRADICTION_FIRST)
    tokenizer = _tokenizer([*texts, "determine if the hypothesis is true given the premise ? premise :"])
    if not per_token:
        tokenizer.post_processor = TemplateProcessing(
            single="[S] $A [E]", pair="[S] $A [E] $B:1 [E]:1", special_tokens=[("[S]", START), ("[E]", END)]
        )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    labels = [
        str(label).lower() for _, label in sorted(config.get("id2label", {"0": "label_0", "1": "label_1"}).items())
    ]
    border = tokenizer.token_to_id("hypothesis") or END if per_token else END
    onnx.save(_graph(labels, border, per_token=per_token), str(folder / place))
    return folder


def _tokenizer(texts: Sequence[str]) -> Tokenizer:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace

    words = sorted({word for text in texts for word in re.findall(r"\w+|[^\w\s]+", text.lower())})
    vocabulary = {"[P]": PADDING, "[U]": UNKNOWN, "[S]": START, "[E]": END}
    vocabulary |= {word: number for number, word in enumerate(words, start=len(vocabulary))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[U]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    return tokenizer


def _graph(labels: Sequence[str], border: int, *, per_token: bool) -> Any:
    """The share of words behind the last-but-one border which stand before it too, as logits of the labels."""
    import numpy
    from onnx import TensorProto, checker, helper, numpy_helper

    nodes: list[Any] = []
    constants: dict[str, Any] = {
        "border": numpy.array(border, numpy.int64),
        "one": numpy.array(1, numpy.int64),
        "two": numpy.array(2, numpy.int64),
        "end": numpy.array(END, numpy.int64),
        "steep": numpy.array(STEEP, numpy.float32),
        "half": numpy.array(STEEP / 2, numpy.float32),
        "little": numpy.array(1e-6, numpy.float32),
        "sign": numpy.array([1.0] if len(labels) == 1 else [_SIGNS[label] for label in labels], numpy.float32)[None, :],
        "axis_1": numpy.array([1], numpy.int64),
        "axis_2": numpy.array([2], numpy.int64),
        "at_1": numpy.array(1, numpy.int64),
    }

    def node(kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    node("Equal", ["input_ids", "border"], "is_border")
    node("Cast", ["is_border"], "borders", to=TensorProto.INT64)
    node("CumSum", ["borders", "at_1"], "passed")
    node("Greater", ["input_ids", "end"], "is_word")
    # The prompt of the kind per token names the hypothesis once before it brings it.
    claim_from = "two" if per_token else "one"
    node("Less", ["passed", claim_from], "is_before")
    node("And", ["is_before", "is_word"], "in_passage")
    node("Not", ["is_before"], "is_behind")
    node("Not", ["is_border"], "is_inside")
    node("And", ["is_behind", "is_inside"], "behind")
    node("And", ["behind", "is_word"], "in_claim")
    node("Unsqueeze", ["input_ids", "axis_2"], "rows")
    node("Unsqueeze", ["input_ids", "axis_1"], "columns")
    node("Equal", ["rows", "columns"], "same")
    node("Unsqueeze", ["in_passage", "axis_1"], "columns_of_passage")
    node("And", ["same", "columns_of_passage"], "same_in_passage")
    node("Cast", ["same_in_passage"], "counted", to=TensorProto.FLOAT)
    node("ReduceMax", ["counted", "axis_2"], "is_there", keepdims=0)
    node("Cast", ["in_claim"], "asked", to=TensorProto.FLOAT)
    node("Mul", ["is_there", "asked"], "held")
    node("ReduceSum", ["held", "axis_1"], "holding", keepdims=1)
    node("ReduceSum", ["asked", "axis_1"], "asking", keepdims=1)
    node("Add", ["asking", "little"], "asking_some")
    node("Div", ["holding", "asking_some"], "share")
    node("Mul", ["share", "steep"], "steeply")
    node("Sub", ["steeply", "half"], "logit")
    node("Mul", ["logit", "sign"], "by_label")
    shape: list[Any] = ["batch", len(labels)]
    if per_token:
        # Only the first token tells; all others say the opposite.
        node("Shape", ["input_ids"], "shape")
        node("ConstantOfShape", ["shape"], "zeros", value=helper.make_tensor("v", TensorProto.INT64, [1], [1]))
        node("CumSum", ["zeros", "at_1"], "positions")
        node("Equal", ["positions", "one"], "is_first")
        node("Cast", ["is_first"], "first", to=TensorProto.FLOAT)
        node("Mul", ["first", "two_f"], "doubled")
        node("Sub", ["doubled", "one_f"], "way")
        node("Unsqueeze", ["way", "axis_2"], "ways")
        node("Unsqueeze", ["by_label", "axis_1"], "spread")
        node("Mul", ["ways", "spread"], "logits")
        constants |= {"two_f": numpy.array(2, numpy.float32), "one_f": numpy.array(1, numpy.float32)}
        shape = ["batch", "tokens", len(labels)]
    else:
        node("Identity", ["by_label"], "logits")
    names = ["input_ids", "attention_mask"]
    graph = helper.make_graph(
        nodes,
        "overlap",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"]) for name in names],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    checker.check_model(model)
    return model


_SIGNS = {"entailment": 1.0, "contradiction": -1.0, "neutral": -1.0, "label_1": 1.0, "label_0": -1.0}
"""By label, in lower case; a single label is a score of support."""
