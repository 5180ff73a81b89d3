"""Abstention by the shipped detector against labels: `python benchmarks/abstention_agreement.py [--beside] FILE...`.

Recall (of the answers that decline, how many are seen) and false alarms (of those that answer, how many are taken for
abstentions), by language and by file. Printed as Markdown. `train_abstention.py --measure` measures
on answers that the detector was trained on, each left out in turn.

`--beside` prints what becomes of the texts in tests/data/wordings/answering_part.jsonl with each ending: by
the weights alone, and with the part that gives what is asked.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from train_abstention import DATA, HEAD, Row, line, read_rows, share

from pytest_rageval.abstention.detector import declines, log_odds, weights

BESIDE = DATA.parent / "wordings" / "answering_part.jsonl"


def main(arguments: Sequence[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Recall and false alarms of the detector of abstentions")
    parser.add_argument("--beside", action="store_true", help="measure answers and refusals beside other sentences")
    parser.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help="labelled answers, as in tests/data/abstention"
    )
    rows: list[Row] = []
    declined: list[bool | None] = []
    chosen = parser.parse_args(arguments)
    if chosen.beside:
        print("\n".join(beside()))
    for path in chosen.files:
        rows += read_rows(path)
        declined += [verdict(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if not rows:
        return 0
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


def beside() -> Iterator[str]:
    """Yield, as Markdown, how many texts are taken for refusals, and how many are undecided."""
    every = [json.loads(line) for line in BESIDE.read_text(encoding="utf-8").splitlines()]
    yield "| texts | refusals by the weights alone | undecided | refusals | undecided |"
    yield "| --- | --- | --- | --- | --- |"
    for of_set in dict.fromkeys(row["set"] for row in every):
        own = [row for row in every if row["set"] == of_set]
        for label in ("answered", "abstained"):
            chosen = [row for row in own if row["label"] == label]
            yield beside_line(f"{of_set}, {label}", [(row["question"], row["answer"]) for row in chosen])
            yield beside_line(f"{of_set}, {label}, with each ending", list(with_endings(chosen, own)))


def with_endings(rows: Sequence[dict[str, str]], own: Sequence[dict[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the question and the text of each row with each ending in its language."""
    for row in rows:
        between = "" if row["language"] in ("ja", "zh") else " "
        for ending in own:
            if ending["label"] == "ending" and ending["language"] == row["language"]:
                yield row["question"], f"{row['answer']}{between}{ending['answer']}"


def beside_line(name: str, texts: Sequence[tuple[str, str]]) -> str:
    """Return one row of the table of `beside`."""
    zone = weights().limits
    odds = [log_odds(answer, question) for question, answer in texts]
    verdicts = [declines(answer, question).abstained for question, answer in texts]
    cells = [
        share(sum(one >= zone.declines for one in odds), len(odds)),
        f"{sum(zone.answers <= one < zone.declines for one in odds) / len(odds):.1%}",
        share(verdicts.count(True), len(verdicts)),
        f"{verdicts.count(None) / len(verdicts):.1%}",
    ]
    return f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
