"""Agreement of the lexical judge with people: `python benchmarks/judge_agreement.py [--data DIR]`.

Two questions: does it rank answers that people found hallucinated below the others, and a sound answer with one thing
changed below the answer as it was? Beside it, plain coverage: the share of an answer's content words in the contexts.
Printed as Markdown; the same every time. Standard library and our judge only.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from edited_answers import KINDS, edits_of

from pytest_rageval.judges.lexical_judge import LexicalJudge
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.language.words import content_tokens
from pytest_rageval.model import JudgeRequest

DATA = Path(__file__).parents[1] / "tests" / "data" / "groundedness"
HALVES = ("developed on", "held out")
PUBLISHED = {"rl_f": "RAGAS faithfulness, as published", "rb_llm": "RB_llm, as published"}

Row = Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    """Print the tables, and write them where that is asked for."""
    parser = argparse.ArgumentParser(description="How far does the lexical judge agree with people?")
    parser.add_argument("--data", type=Path, default=DATA, metavar="DIR", help="folder with a labelled.jsonl")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables there as well")
    options = parser.parse_args(arguments)
    lines = (options.data / "labelled.jsonl").read_text(encoding="utf-8").splitlines()
    text = "\n".join(tables([json.loads(line) for line in lines]))
    print(text)
    if options.markdown:
        options.markdown.write_text(text + "\n", encoding="utf-8")
    return 0


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """Both tables, line by line."""
    scores = {row["id"]: groundedness(row["answer"], row["contexts"]) for row in rows}
    yield f"{LexicalJudge.model}, AUROC of hallucinated or not"
    yield from _table(("answers", "n", "without score", "all", *HALVES), _agreement(rows, scores))
    yield f"\n{LexicalJudge.model}, sound answers and the same with one change: AUROC, and pairs in the right order"
    yield from _table(("change", "pairs", "all", *HALVES, "right order"), _changes(rows, scores))


def groundedness(answer: str, contexts: Sequence[str]) -> float | None:
    """Our judge's groundedness, None where it says nothing; it is not asked where no context is known."""
    if not contexts:
        return None
    passages = [{"chunk_id": None, "text": text} for text in contexts]
    variables = {"question": "", "answer": answer, "contexts": passages}
    request = JudgeRequest("groundedness", load_rubric("groundedness").prompt_version, variables)
    return asyncio.run(LexicalJudge().judge(request)).scores.get("groundedness")


def plain_coverage(answer: str, contexts: Sequence[str]) -> float:
    """The share of the answer's content words that any context has."""
    known = {word for text in contexts for word in content_tokens(text)}
    words = set(content_tokens(answer))
    return len(words & known) / max(1, len(words))


def auroc(higher: Sequence[float], lower: Sequence[float]) -> float | None:
    """How often a value of the one beats a value of the other, ties by half; None where either is empty."""
    ordered = sorted(lower)
    wins = sum(bisect_left(ordered, value) + bisect_right(ordered, value) for value in higher)
    return wins / (2 * len(higher) * len(lower)) if higher and lower else None


def half(name: str) -> str:
    """In which half is the answer of that id? Development looked at the first one only."""
    return HALVES[hashlib.sha256(name.encode()).digest()[0] % 2]


def _agreement(rows: Sequence[Row], scores: Mapping[str, float | None]) -> Iterator[tuple[str, ...]]:
    for source in sorted({row["set"] for row in rows}):
        answers = [row for row in rows if row["set"] == source]
        scored = [row for row in answers if scores[row["id"]] is not None]
        yield (source, str(len(scored)), str(len(answers) - len(scored)), *_by_half(scored, scores))
        plain = {row["id"]: plain_coverage(row["answer"], row["contexts"]) for row in scored}
        yield (f"{source}, plain coverage", str(len(scored)), "", *_by_half(scored, plain))
        for name, title in PUBLISHED.items():
            judged = [row for row in scored if row.get("published", {}).get(name) is not None]
            if judged:
                values = {row["id"]: row["published"][name] for row in judged}
                yield (f"{source}, {title}", str(len(judged)), "", *_by_half(judged, values))


def _by_half(rows: Sequence[Row], scores: Mapping[str, float | None]) -> Iterator[str]:
    for chosen in (HALVES, *((name,) for name in HALVES)):
        here = [row for row in rows if half(row["id"]) in chosen]
        sound, invented = ([scores[row["id"]] for row in here if row["hallucinated"] == label] for label in (0, 1))
        yield _shown(auroc(sound, invented))  # type: ignore[arg-type]  # rows without a score are not among them


def _changes(rows: Sequence[Row], scores: Mapping[str, float | None]) -> Iterator[tuple[str, ...]]:
    """An edited answer without a score (the change left no claim to look at) counts as not seen: a tie."""
    lenders = [text for row in rows for text in row["contexts"]]
    pairs: dict[str, dict[str, list[tuple[float, float]]]] = {kind: defaultdict(list) for kind in (*KINDS, "all")}
    for row in rows:
        before = scores[row["id"]]
        if before is None or row["hallucinated"]:
            continue
        for edit in edits_of(row["id"], row["answer"], row["contexts"], lenders):
            after = groundedness(edit.answer, row["contexts"])
            for kind in (edit.kind, "all"):
                pairs[kind][half(row["id"])].append((before, before if after is None else after))
    for kind, by_half in pairs.items():
        every = [pair for found in by_half.values() for pair in found]
        ordered = sum((before > after) + (before == after) / 2 for before, after in every) / max(1, len(every))
        yield (
            kind,
            str(len(every)),
            *(_pooled(part) for part in (every, *map(by_half.__getitem__, HALVES))),
            f"{ordered:.2f}",
        )


def _pooled(pairs: Iterable[tuple[float, float]]) -> str:
    before, after = zip(*pairs, strict=True) if pairs else ((), ())
    return _shown(auroc(before, after))


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield f"| {' | '.join(row)} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
