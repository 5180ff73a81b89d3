"""Abstention by the shipped detector against labels: `python benchmarks/abstention_agreement.py FILE...`.

Recall (of the answers that decline, how many are seen) and false alarms (of those that answer, how many are taken for
abstentions), by language and by file. Printed as Markdown. `train_abstention.py --measure` measures
on answers that the detector was trained on, each left out in turn.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from train_abstention import HEAD, Row, line, read_rows

from pytest_rageval.abstention.detector import declines


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Recall and false alarms of the detector of abstentions")
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="labelled answers, as in tests/data/abstention"
    )
    rows: list[Row] = []
    declined: list[bool | None] = []
    for path in parser.parse_args(arguments).files:
        rows += read_rows(path)
        declined += [verdict(line) for line in path.read_text(encoding="utf-8").splitlines()]
    print(HEAD)
    for language in sorted({row.language for row in rows}):
        print(line(language, rows, declined, [row.language == language for row in rows]))
    for group in sorted({row.group for row in rows}):
        print(line(group, rows, declined, [row.group == group for row in rows]))
    return 0


def verdict(labelled: str) -> bool | None:
    """Return whether a labelled answer, as a line of JSON, abstains; None in the zone of doubt."""
    row = json.loads(labelled)
    return declines(row["answer"], row["question"], passages=row.get("chunks") or ()).abstained


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
