"""Files of evaluation cases: found, read, checked. Names only; a module loads when one of its names is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_rageval.cases.canonical import (
        asked_hash,
        case_from_mapping,
        case_hashes,
        case_to_mapping,
        content_hash,
    )
    from pytest_rageval.cases.discovery import find_case_files, is_case_file
    from pytest_rageval.cases.loading import CaseFile, load_file, looks_like_cases
    from pytest_rageval.cases.schema import case_schema

__all__ = [
    "CaseFile",
    "asked_hash",
    "case_from_mapping",
    "case_hashes",
    "case_schema",
    "case_to_mapping",
    "content_hash",
    "find_case_files",
    "is_case_file",
    "load_file",
    "looks_like_cases",
]

_HOME = {
    "CaseFile": "loading",
    "asked_hash": "canonical",
    "case_from_mapping": "canonical",
    "case_schema": "schema",
    "case_hashes": "canonical",
    "case_to_mapping": "canonical",
    "content_hash": "canonical",
    "find_case_files": "discovery",
    "is_case_file": "discovery",
    "load_file": "loading",
    "looks_like_cases": "loading",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
