"""Load the validator that a setting names: a TOML or JSON ontology, or RDF with SHACL shapes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pytest_rageval.errors import SettingsError
from pytest_rageval.metrics.ontology.claims import Validator

MAX_BYTES = 4 * 2**20
"""Of all files of an ontology together."""


def load_validator(places: Sequence[str], root: Path) -> Validator:
    """The validator of one `.toml` or `.json` file, or of `.ttl` files that hold an ontology and SHACL shapes together.

    Paths are relative to `root`. Raises SettingsError with every problem of the files, one line each.
    """
    kinds = {Path(place).suffix.lower() for place in places}
    if kinds == {".ttl"}:
        return _of_shapes(_read(places, root))
    if len(places) != 1 or not kinds <= {".toml", ".json"}:
        raise SettingsError(
            f"ontology is {', '.join(map(repr, places)) or 'empty'}; write one .toml or .json file, "
            "or a list of .ttl files with RDF and SHACL shapes"
        )
    from pytest_rageval.metrics.ontology.declared import DeclaredValidator
    from pytest_rageval.metrics.ontology.toml_ontology import read_ontology

    (text,) = _read(places, root).values()
    return DeclaredValidator(read_ontology(places[0], text), _digest([text]))


def _of_shapes(texts: Mapping[str, str]) -> Validator:
    try:
        from pytest_rageval.metrics.ontology.shapes import shapes_validator
    except ModuleNotFoundError as missing:
        raise SettingsError(
            f"ontology: {', '.join(texts)} needs {missing.name}, which is not installed; "
            "pip install 'pytest-rageval[ontology]', or write the ontology as TOML"
        ) from None
    return shapes_validator(texts, _digest(texts.values()))


def _read(places: Sequence[str], root: Path) -> dict[str, str]:
    """The texts of the files, by place."""
    content: dict[str, str] = {}
    problems = []
    left = MAX_BYTES
    for place in places:
        try:
            with (root / place).open("rb") as file:
                data = file.read(left + 1)
            content[place] = data.decode("utf-8-sig")
        except OSError as error:
            problems.append(f"ontology: {place} cannot be read: {error.strerror}; mend the path")
        except UnicodeDecodeError as error:
            problems.append(f"{place}: not UTF-8 at byte {error.start}; save it as UTF-8")
        else:
            left -= len(data)
            if left < 0:
                raise SettingsError(f"{place}: an ontology is at most {MAX_BYTES // 2**20} MiB; keep what is checked")
    if problems:
        raise SettingsError(*problems)
    return content


def _digest(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8") + b"\0")
    return digest.hexdigest()
