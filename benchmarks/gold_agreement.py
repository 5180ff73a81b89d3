"""Verdicts on answers against those of people: `python benchmarks/gold_agreement.py [FILE]`.

For each system, and for `gold_in_answer`, plain inclusion of a gold answer, token recall and token F1: the share of
right answers that fail, of wrong answers that pass, and of all verdicts that agree. Printed as Markdown. FILE holds
answers as `tests/data/correctness/judged.jsonl` does, which is the default.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_rageval.language.gold_search import best_fit
from pytest_rageval.language.words import normalise
from pytest_rageval.metrics.answer import best_f1
from pytest_rageval.metrics.gold_answer import best_recall

PACK = Path(__file__).parent.parent / "tests/data/correctness/judged.jsonl"
Row = Mapping[str, Any]
LIMIT = 0.5


def is_included(row: Row) -> bool:
    """Check whether the normalised answer quotes a gold answer."""
    answer = f" {normalise(row['answer'])} "
    return any(f" {normalise(gold)} " in answer for gold in row["golds"])


VERDICTS: Mapping[str, Callable[[Row], bool]] = {
    "gold_in_answer >= 0.5": lambda row: best_fit(row["answer"], row["golds"], row["question"]).share >= LIMIT,
    "inclusion": is_included,
    "token_recall >= 0.5": lambda row: best_recall(row["answer"], row["golds"]).value >= LIMIT,
    "token_f1 >= 0.5": lambda row: best_f1(row["answer"], row["golds"]) >= LIMIT,
}


def figures(rows: Iterable[Row], passes: Callable[[Row], bool]) -> str:
    """Return the cells of one verdict: right answers that fail, wrong ones that pass, agreement."""
    right = wrong = failed = passed = 0
    for row in rows:
        verdict = passes(row)
        if row["correct"]:
            right += 1
            failed += not verdict
        else:
            wrong += 1
            passed += verdict
    agreement = 1 - (failed + passed) / (right + wrong)
    return f"{failed / right:.3f} / {passed / wrong:.3f} / {agreement:.3f}"


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Verdicts on answers against those of people")
    parser.add_argument("file", type=Path, nargs="?", default=PACK)
    text = parser.parse_args(arguments).file.read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    print(f"| right that fail / wrong that pass / agreement | {' | '.join(VERDICTS)} |")
    print(f"| --- {'| ---: ' * len(VERDICTS)}|")
    for system in (*sorted({row["system"] for row in rows}), "all"):
        chosen = [row for row in rows if system in ("all", row["system"])]
        cells = [figures(chosen, passes) for passes in VERDICTS.values()]
        print(f"| {system} ({len(chosen)}) | {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
