"""What a frozen scenario is made of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

RUN_FILES = ("results.jsonl", "scores.jsonl", "metrics.json", "config.json", "summary.md", "report.html")


class Scenario(NamedTuple):
    """Some command lines in a fresh folder.

    files    the texts of the project's files, by path
    steps    `pytest ...`, `rageval ...`, `cp FROM TO` or `rm FILE`; ` < FILE` at the end is the standard input
    keep     patterns of files that are kept
    digests  those of them of which a hash is enough: of each record, or of the whole
    """

    name: str
    files: Mapping[str, str]
    steps: Sequence[str]
    keep: Sequence[str] = ()
    digests: Sequence[str] = ()


def folder(path: Path, into: str = "") -> dict[str, str]:
    """Return the texts of all files of a folder."""
    return {
        into + file.relative_to(path).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def jsonl(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def of_run(run: str, *names: str) -> tuple[str, ...]:
    """Return the paths of files of a run; all of `RUN_FILES` if none is named."""
    return tuple(f"reports/runs/{run}/{name}" for name in names or RUN_FILES)
