"""Files of a cross-encoder (ONNX model, tokenizer, configuration): found in a folder or on a hub, and hashed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import read_json
from pytest_rageval.model import Json
from pytest_rageval.text import printable

MODELS = ("model.onnx", "onnx/model.onnx")
"""Where exporters put the model, below its folder."""
WEIGHTS = ("{}_data", "{}.data")
"""Names of a file beside the model that holds the weights of a large one."""
CONFIG, TOKENIZER, TOKENIZER_CONFIG = "config.json", "tokenizer.json", "tokenizer_config.json"

EXPORT = "optimum-cli export onnx --task text-classification --model MODEL FOLDER"
_HUB_ID = re.compile(r"(?P<id>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's files. `name` is that of its folder or repository; `digest` the SHA-256 of all that decides scores."""

    name: str
    model: Path
    tokenizer: Path
    config: Mapping[str, Json]
    tokenizer_config: Mapping[str, Json]
    digest: str


Find = Callable[[str], Path | None]
"""The file of a name in the model's folder or repository, None where there is none."""


def model_files(written: str, root: Path | None) -> ModelFiles:
    """The files of `FOLDER`, relative to the root, or of the hub's `OWNER/NAME` or `OWNER/NAME@REVISION`.

    A folder comes before a repository of the same name. SettingsError in one line where a file is missing.
    """
    folder = (root or Path()) / Path(written).expanduser()
    if written and folder.is_dir():
        return _read(folder.resolve().name, lambda name: path if (path := folder / name).is_file() else None)
    parts = _HUB_ID.fullmatch(written)
    if parts is None or written.startswith((".", "~")):
        raise SettingsError(f"{printable(written)} is no folder, and no OWNER/NAME of the Hugging Face hub")
    return _read(parts["id"].rpartition("/")[2], _hub(parts["id"], parts["revision"]))


def _read(name: str, find: Find) -> ModelFiles:
    config, tokenizer, tokenizer_config = (find(file) for file in (CONFIG, TOKENIZER, TOKENIZER_CONFIG))
    place, model = next(((place, path) for place in MODELS if (path := find(place)) is not None), (None, None))
    if place is None or model is None:
        raise SettingsError(f"there is no {' or '.join(MODELS)} in it; make one, as in `{EXPORT}`")
    if config is None or tokenizer is None:
        missing = CONFIG if config is None else TOKENIZER
        raise SettingsError(f"there is no {missing} beside its {place}; `{EXPORT}` writes both")
    weights = [path for form in WEIGHTS if (path := find(form.format(place))) is not None]
    return ModelFiles(
        name,
        model,
        tokenizer,
        read_json(config, "the model's configuration"),
        {} if tokenizer_config is None else read_json(tokenizer_config, "the tokenizer's configuration"),
        _digest(path for path in (model, *weights, tokenizer, config, tokenizer_config) if path is not None),
    )


def _digest(paths: Iterator[Path]) -> str:
    """SHA-256 over the files' lengths and contents, in this order; their names and places do not count."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.stat().st_size}\n".encode())
        with path.open("rb") as file:
            while part := file.read(_CHUNK):
                digest.update(part)
    return digest.hexdigest()


def _hub(repository: str, revision: str | None) -> Find:
    """Files of the hub, downloaded once; with HF_HUB_OFFLINE, those that were downloaded before."""
    # Imported here, since only a model of the hub needs it.
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

    def find(name: str) -> Path | None:
        try:
            return Path(hf_hub_download(repository, name, revision=revision))
        except LocalEntryNotFoundError as error:
            if name != CONFIG:
                return None  # not downloaded before; what must be there is missed by whoever asks for it
            raise _unreachable(repository, error) from None
        except EntryNotFoundError:
            return None
        except (HfHubHTTPError, OSError, ValueError) as error:
            raise _unreachable(repository, error) from None

    return find


def _unreachable(repository: str, error: Exception) -> SettingsError:
    reason = printable(" ".join(str(error).split()))[:200]
    return SettingsError(f"{repository} is no folder, and cannot be had from the hub: {type(error).__name__}: {reason}")
