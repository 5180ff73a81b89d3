"""A cross-encoder: a sequence classifier in ONNX that gives the chance that a passage supports a claim."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.io.atomic import read_json
from pytest_rageval.model import Json
from pytest_rageval.text import printable

if TYPE_CHECKING:
    import numpy
    from tokenizers import Encoding, Tokenizer


BATCH = 16
"""Pairs in one pass through the model."""
MOST_TOKENS = 512
"""Tokens of a pair, even if the model can read more: these models were trained on so many."""
MARGIN = 8
"""Additional tokens that a cut text may take, compared with its tokens in the whole text."""
OVERLAP = 5
"""Neighbouring windows of a passage share 1/5 of their tokens, so that hardly any sentence is cut in both."""

_SUPPORT = frozenset(
    {
        "entailment",
        "entailed",
        "entail",
        "entails",
        "supported",
        "support",
        "supports",
        "yes",
        "true",
        "consistent",
        "factual",
        "grounded",
        "faithful",
    }
)
"""Labels that mean support."""
_HHEM_2 = "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {text1}\n\nHypothesis: {text2}"
"""The prompt in the code of HHEM 2.1. Source: its card, vectara/hallucination_evaluation_model."""


@dataclass(frozen=True, slots=True)
class Head:
    """The format of a model's input and output.

    index    index of the label that means support
    chance   `sigmoid` of that label's logit, or `softmax` over all labels
    prompt   for models that read one text, with {text1} for the passage and {text2} for the claim
    pooling  for outputs with a row of logits per token: the first row, or the mean
    """

    index: int
    chance: Literal["sigmoid", "softmax"]
    prompt: str | None = None
    pooling: Literal["first", "mean"] = "first"


def head_of(config: Mapping[str, Json]) -> Head:
    """Return the head described by a model's config.json; raise SettingsError if no label clearly means support.

    A single label is a score, as in HHEM 1. Of `LABEL_0` and `LABEL_1` the second means support, as in MiniCheck and
    HHEM 2. Of named labels, exactly one must mean support, as `entailment` does.
    """
    is_hhem_2 = str(config.get("model_type", "")).startswith("HHEMv2")
    prompt = config.get("prompt", _HHEM_2 if is_hhem_2 else None)
    if prompt is not None and not (isinstance(prompt, str) and "{text1}" in prompt and "{text2}" in prompt):
        raise SettingsError("prompt of its config.json has no {text1} and {text2}")
    labels = _labels(config)
    if not labels and is_hhem_2:
        labels = ["LABEL_0", "LABEL_1"]
    is_score = len(labels) == 1 or config.get("problem_type") == "multi_label_classification"
    return Head(
        index=_index_of_support(labels),
        chance="sigmoid" if is_score else "softmax",
        prompt=prompt,
        pooling="mean" if config.get("classifier_pooling") == "mean" else "first",
    )


def _labels(config: Mapping[str, Json]) -> list[str]:
    """Return the labels in the order of their numbers: as named, else `LABEL_0` and so on, if their number is known."""
    names = config.get("id2label")
    if isinstance(names, Mapping) and all(str(index).isdigit() for index in names):
        return [str(names[index]) for index in sorted(names, key=int)]
    number = config.get("num_labels")
    return [f"LABEL_{index}" for index in range(number)] if type(number) is int else []


def _index_of_support(labels: Sequence[str]) -> int:
    if len(labels) == 1:
        return 0
    if list(labels) == ["LABEL_0", "LABEL_1"]:
        return 1
    indices = [index for index, name in enumerate(labels) if name.strip().casefold() in _SUPPORT]
    if len(indices) != 1:
        listed = printable(", ".join(labels))[:200] or "none"
        raise SettingsError(
            f"which label of its config.json means support cannot be told from id2label ({listed}); name it entailment"
        )
    return indices[0]


class CrossEncoder:
    """A model, loaded from its files at the first use. It runs one pass at a time, in any thread.

    The same pairs in the same order always give the same numbers.
    """

    def __init__(self, files: ModelFiles) -> None:
        self._files = files
        self._head = head_of(files.config)
        self.most_tokens = _most_tokens(files)
        # Judgements come from several threads, and a pass uses all cores already.
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Tokenizer] | None = None

    def support(self, claims: Sequence[str], passages: Sequence[str]) -> list[list[float]]:
        """Return by claim and passage the chance that the passage, by its best window, supports the claim.

        A claim too long for the model is judged in parts, and the least supported part counts. Raise JudgeError if the
        model cannot be loaded, or if its output does not fit its configuration.
        """
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            session, tokenizer = self._loaded
            parts = [list(_cut(tokenizer, claim, self.most_tokens // 2)) for claim in claims]
            # By claim and part: the best chance of each passage so far.
            best: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0.0] * len(passages))
            pairs = self._pairs(tokenizer, parts, passages)
            while batch := list(islice(pairs, BATCH)):
                chances = self._chances(session, [pair.encoding for pair in batch])
                for pair, chance in zip(batch, chances, strict=True):
                    of_passages = best[pair.claim, pair.part]
                    of_passages[pair.passage] = max(of_passages[pair.passage], chance)
            support: list[list[float]] = []
            for claim, parts_of_claim in enumerate(parts):
                rows = [best[claim, part] for part in range(len(parts_of_claim))]
                # A claim is supported as a whole only if each of its parts is.
                support.append([min(of_parts) for of_parts in zip(*rows, strict=True)])
            return support

    def _load(self) -> tuple[Any, Tokenizer]:
        import onnxruntime
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(self._files.tokenizer))
            # The tokenizer's file may set both; we cut and pad by ourselves.
            tokenizer.no_padding()
            tokenizer.no_truncation()
            options = onnxruntime.SessionOptions()
            # Errors only: the warnings of an export are nothing that a user can mend.
            options.log_severity_level = 3
            session = onnxruntime.InferenceSession(
                str(self._files.model), sess_options=options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # noqa: BLE001  both packages raise their own exceptions for broken files
            reason = printable(" ".join(str(error).split()))[:200]
            raise JudgeError("exception", f"{self._files.model.parent} cannot be loaded: {reason}") from None
        return session, tokenizer

    def _pairs(self, tokenizer: Tokenizer, claims: Sequence[Sequence[str]], passages: Sequence[str]) -> Iterator[_Pair]:
        """Yield each part of a claim with each window of each passage."""
        frame = len(self._encoded(tokenizer, "", "").ids)
        for claim_index, parts in enumerate(claims):
            for part_index, part in enumerate(parts):
                tokens = len(tokenizer.encode(part, add_special_tokens=False).ids)
                room = max(1, self.most_tokens - frame - tokens - MARGIN)
                for passage_index, passage in enumerate(passages):
                    for window in _cut(tokenizer, passage, room):
                        encoding = self._encoded(tokenizer, window, part)
                        # Skipped, since its claim would be cut: unread text is not supported.
                        if len(encoding.ids) <= self.most_tokens:
                            yield _Pair(claim_index, part_index, passage_index, encoding)

    def _encoded(self, tokenizer: Tokenizer, passage: str, claim: str) -> Encoding:
        if self._head.prompt is None:
            return tokenizer.encode(passage, claim)
        return tokenizer.encode(self._head.prompt.replace("{text1}", passage).replace("{text2}", claim))

    def _chances(self, session: Any, encodings: Sequence[Encoding]) -> list[float]:
        import numpy

        longest = max(len(encoding.ids) for encoding in encodings)
        pad_token = self._files.config.get("pad_token_id")
        if type(pad_token) is not int:
            pad_token = 0
        columns: dict[str, list[list[int]]] = {"input_ids": [], "attention_mask": [], "token_type_ids": []}
        for encoding in encodings:
            padding = longest - len(encoding.ids)
            columns["input_ids"].append(encoding.ids + [pad_token] * padding)
            columns["attention_mask"].append([1] * len(encoding.ids) + [0] * padding)
            columns["token_type_ids"].append(encoding.type_ids + [0] * padding)
        inputs = {entry.name: entry.type for entry in session.get_inputs()}
        if unknown := sorted(inputs.keys() - columns.keys()):
            raise JudgeError("invalid_response", f"the model reads {', '.join(unknown)}: it is no sequence classifier")
        feed = {}
        for name, kind in inputs.items():
            # Most exporters write 64-bit inputs.
            integer = numpy.int32 if kind == "tensor(int32)" else numpy.int64
            feed[name] = numpy.array(columns[name], dtype=integer)
        try:
            logits = session.run(None, feed)[0]
        except Exception as error:  # noqa: BLE001  onnxruntime raises its own exceptions
            reason = printable(" ".join(str(error).split()))[:200]
            raise JudgeError("exception", f"the model failed: {reason}") from None
        return _support_in(numpy.asarray(logits, dtype=numpy.float64), feed["attention_mask"], self._head)


class _Pair(NamedTuple):
    """A part of a claim with a window of a passage, by their indices, encoded for the model."""

    claim: int
    part: int
    passage: int
    encoding: Encoding


def _support_in(logits: numpy.ndarray[Any, Any], mask: numpy.ndarray[Any, Any], head: Head) -> list[float]:
    """Return the chance of support in each row of logits."""
    import numpy

    if logits.ndim == 3 and head.pooling == "first":
        logits = logits[:, 0, :]
    elif logits.ndim == 3:
        weights = mask[:, :, None] / mask.sum(axis=1)[:, None, None]
        logits = (logits * weights).sum(axis=1)
    if logits.ndim == 1:
        logits = logits[:, None]
    if logits.ndim != 2 or logits.shape[1] <= head.index or not numpy.isfinite(logits).all():
        raise JudgeError("invalid_response", "the model's output is not one row of finite logits a pair")
    if head.chance == "sigmoid":
        chances = 1 / (1 + numpy.exp(-numpy.clip(logits[:, head.index], -500, 500)))
    else:
        # Less the largest: the power of a large logit would overflow.
        raised = numpy.exp(logits - logits.max(axis=1, keepdims=True))
        chances = raised[:, head.index] / raised.sum(axis=1)
    return [float(chance) for chance in chances]


def _cut(tokenizer: Tokenizer, text: str, room: int) -> Iterator[str]:
    """Yield overlapping windows of at most `room` tokens, or the whole text if it fits."""
    offsets = tokenizer.encode(text, add_special_tokens=False).offsets
    if len(offsets) <= room:
        yield text
        return
    step = max(1, room - room // OVERLAP)
    for start in range(0, len(offsets), step):
        window = offsets[start : start + room]
        yield text[window[0][0] : window[-1][1]]
        if start + room >= len(offsets):
            return


def _most_tokens(files: ModelFiles) -> int:
    """Return how many tokens of a pair the model reads, by configuration and tokenizer, at most MOST_TOKENS."""
    config = files.config
    positions = config.get("max_position_embeddings")
    if type(positions) is int and "roberta" in str(config.get("model_type", "")):
        # RoBERTa's positions start after its padding token.
        positions -= int(config.get("pad_token_id") or 0) + 1
    limits = (positions, config.get("n_positions"), files.tokenizer_config.get("model_max_length"))
    stated = [limit for limit in limits if type(limit) is int and limit > 0]
    return min([MOST_TOKENS, *stated])


MODELS = ("model.onnx", "onnx/model.onnx")
"""Paths of the model below its folder, by exporter."""
WEIGHTS = ("{}_data", "{}.data")
"""Names of the separate file with the weights of a large model."""
CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"

EXPORT = "optimum-cli export onnx --task text-classification --model MODEL FOLDER"
_HUB_ID = re.compile(r"(?P<id>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's files, with the name of its folder or repository, and the SHA-256 of all that affects scores."""

    name: str
    model: Path
    tokenizer: Path
    config: Mapping[str, Json]
    tokenizer_config: Mapping[str, Json]
    digest: str


Find = Callable[[str], Path | None]
"""Returns a file of the model's folder or repository by name, or None."""


def model_files(written: str, root: Path | None) -> ModelFiles:
    """Find the files of `FOLDER`, relative to the root, or of the hub's `OWNER/NAME` or `OWNER/NAME@REVISION`.

    A folder takes precedence over a repository of the same name. Raise SettingsError if a file is missing.
    """
    folder = (root or Path()) / Path(written).expanduser()
    if written and folder.is_dir():
        return _read(folder.resolve().name, lambda name: path if (path := folder / name).is_file() else None)
    parts = _HUB_ID.fullmatch(written)
    if parts is None or written.startswith((".", "~")):
        raise SettingsError(f"{printable(written)} is no folder, and no OWNER/NAME of the Hugging Face hub")
    return _read(parts["id"].rpartition("/")[2], _hub(parts["id"], parts["revision"]))


def _read(name: str, find: Find) -> ModelFiles:
    config = find(CONFIG)
    tokenizer = find(TOKENIZER)
    tokenizer_config = find(TOKENIZER_CONFIG)
    model = None
    for place in MODELS:
        model = find(place)
        if model is not None:
            break
    else:
        raise SettingsError(f"there is no {' or '.join(MODELS)} in it; make one, as in `{EXPORT}`")
    if config is None or tokenizer is None:
        missing = CONFIG if config is None else TOKENIZER
        raise SettingsError(f"there is no {missing} beside its {place}; `{EXPORT}` writes both")
    weights = [find(form.format(place)) for form in WEIGHTS]
    return ModelFiles(
        name=name,
        model=model,
        tokenizer=tokenizer,
        config=read_json(config, "the model's configuration"),
        tokenizer_config=read_json(tokenizer_config, "the tokenizer's configuration") if tokenizer_config else {},
        digest=_digest((model, *weights, tokenizer, config, tokenizer_config)),
    )


def _digest(paths: Iterable[Path | None]) -> str:
    """Return the SHA-256 over the files' lengths and contents, in this order; names and folders do not count."""
    digest = hashlib.sha256()
    for path in paths:
        if path is None:
            continue
        # With the lengths, bytes cannot move from one file to the next unnoticed.
        digest.update(f"{path.stat().st_size}\n".encode())
        with path.open("rb") as file:
            while part := file.read(_CHUNK):
                digest.update(part)
    return digest.hexdigest()


def _hub(repository: str, revision: str | None) -> Find:
    """Return a finder for files of the hub, downloaded once; with HF_HUB_OFFLINE, only for those in the cache."""
    # Imported here, since only models from the hub need it.
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

    def find(name: str) -> Path | None:
        try:
            return Path(hf_hub_download(repository, name, revision=revision))
        except LocalEntryNotFoundError as error:
            if name != CONFIG:
                return None  # not in the cache; the caller reports a required file
            raise _unreachable(repository, error) from None
        except EntryNotFoundError:
            return None
        except (HfHubHTTPError, OSError, ValueError) as error:
            raise _unreachable(repository, error) from None

    return find


def _unreachable(repository: str, error: Exception) -> SettingsError:
    reason = printable(" ".join(str(error).split()))[:200]
    return SettingsError(f"{repository} is no folder, and cannot be had from the hub: {type(error).__name__}: {reason}")
