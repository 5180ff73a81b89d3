"""What must hold of the files of a run at any moment, however it ended."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from pytest_rageval.io.sealed_lines import check_seal


def strict(text: str | bytes) -> Any:
    """Parse JSON that has neither NaN nor infinity, and no key twice; bytes must be UTF-8."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "strict")
    return json.loads(text, parse_constant=_refuse, object_pairs_hook=_without_duplicates)


def _refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is no JSON")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), f"a key twice: {[key for key, _ in pairs]}"
    return dict(pairs)


def whole_lines(path: Path) -> Iterator[Any]:
    """Yield the records of a file of lines; only a last line may be cut off."""
    for line in path.read_bytes().split(b"\n")[:-1]:
        check_seal(line)
        yield strict(line)


def check_files(reports: Path) -> None:
    """Check that all files of ours are strict JSON; temporary ones, whose names begin with a dot, are nobody's."""
    for path in sorted(reports.rglob("[!.]*")):
        if path.suffix == ".jsonl":
            for _ in whole_lines(path):
                pass
        elif path.suffix == ".json":
            assert isinstance(strict(path.read_bytes()), dict), path


def check_one_record_a_case(run: Path, cases: int) -> None:
    """Check that a finished run has one result for each case, and at most one observation."""
    for name in ("results.jsonl", "observations.jsonl"):
        keys = Counter((line["case_key"], line["trial"]) for line in whole_lines(run / name))
        assert set(keys.values()) == {1}, keys
        if name == "results.jsonl":
            assert len({key for key, _ in keys}) == cases
    assert not list(run.glob("*-gw*")), "files of workers are left"


def stable(path: Path) -> bytes:
    """Return the bytes of a metrics.json or a baseline, without the member that may differ between equal runs."""
    content = strict(path.read_bytes())
    del content["volatile"]
    return json.dumps(content, ensure_ascii=False).encode()  # in the order of the file
