"""Small cross-encoders in ONNX, made on the spot: they count which words of the second text the first one has.

Each has the form of a kind of models that are published: labels, inputs and outputs are as theirs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
from onnx import TensorProto, checker, helper, numpy_helper, save
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

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
    """A folder with a model that knows the words of these texts.

    `per_token`: it puts out a row of logits for each token, of which the first one's count, and reads one text in which
    the claim follows the word hypothesis.
    """
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
    save(_graph(labels, border, per_token=per_token), str(folder / place))
    return folder


def _tokenizer(texts: Sequence[str]) -> Tokenizer:
    words = sorted({word for text in texts for word in re.findall(r"\w+|[^\w\s]+", text.lower())})
    vocabulary = {"[P]": PADDING, "[U]": UNKNOWN, "[S]": START, "[E]": END}
    vocabulary |= {word: number for number, word in enumerate(words, start=len(vocabulary))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[U]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    return tokenizer


def _graph(labels: Sequence[str], border: int, *, per_token: bool) -> Any:
    """The share of words behind the last-but-one border which stand before it too, as logits of the labels."""
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
