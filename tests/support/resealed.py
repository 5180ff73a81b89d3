"""Stored lines changed as only somebody could who makes their checksums anew: what a run might have written."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from pytest_rageval.io.sealed_lines import sealed

SEAL = re.compile(r',"checksum":"[0-9a-f]{8}"\}$')


def change_lines(path: Path, change: Callable[[str], str]) -> None:
    """Change each line of a file, without its checksum, and seal it again."""
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    path.write_text("".join(sealed(change(SEAL.sub("}", line))) + "\n" for line in lines), encoding="utf-8")
