"""Abstention by phrasing against labels: `python benchmarks/abstention_agreement.py [--data FILE]`.

Recall (of the answers that decline, how many are seen) and false alarms (of those that answer, how many are taken for
refusals), by half, source and language. Printed as Markdown; the same every time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_rageval.refusals.refusals import declines

DATA = Path(__file__).parents[1] / "tests" / "data" / "abstention" / "labelled.jsonl"
HALVES = ("developed on", "held out")

Row = Mapping[str, str]


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Recall and false alarms of abstention by phrasing")
    parser.add_argument("--data", type=Path, default=DATA, metavar="FILE", help="a labelled.jsonl")
    lines = parser.parse_args(arguments).data.read_text(encoding="utf-8").splitlines()
    print("\n".join(table([json.loads(line) for line in lines])))
    return 0


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The table, line by line."""
    yield "| answers | recall | false alarms | partial answers taken for refusals |"
    yield "| --- | --- | --- | --- |"
    english = [row for row in rows if row["language"] == "en"]
    yield _line("English", english)
    for name in HALVES:
        yield _line(f"English, {name}", [row for row in english if half(row["question"]) == name])
    groups: tuple[Callable[[Row], str], ...] = (lambda row: row["language"], lambda row: row["source"])
    for group in groups:
        for name in sorted({group(row) for row in rows}):
            yield _line(name, [row for row in rows if group(row) == name])


def half(question: str) -> str:
    """In which half are the answers to that question? Development looked at the first one only."""
    return HALVES[hashlib.sha256(question.encode()).digest()[0] % 2]


def _line(name: str, rows: Sequence[Row]) -> str:
    return f"| {name} | {' | '.join(_share(rows, label) for label in ('abstained', 'answered', 'partial'))} |"


def _share(rows: Sequence[Row], label: str) -> str:
    answers = [row["answer"] for row in rows if row["label"] == label]
    declined = sum(declines(answer).abstained for answer in answers)
    return f"{declined} of {len(answers)} ({declined / len(answers):.1%})" if answers else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
