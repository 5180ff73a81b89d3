"""A project whose recorded answers all differ: words, numbers, chunks and places, as those of real systems do.

Every answer of `recorded_project` is the same, so that all that is kept by text is found again at once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from projects import configure, write_lines

SEED = 3
WORDS = 5_000
CHUNKS = 5
GRAMMAR = "the of to and a in is that it for on with by be are this at from or was which an not can if has its when"
ONSETS = "b c d f g h l m n p r s t v w pl st tr sh ch"
VOWELS = "a e i o u ea ou"
ENDINGS = ("", "n", "r", "s", "t", "ing", "ed", "er")
SHARE_OF_REFUSALS = 0.1
SHARE_THAT_QUOTES_THE_GOLD = 0.5


class Pair(NamedTuple):
    """A case and the recorded answer to it, each as a line of its file."""

    case: dict[str, Any]
    answer: dict[str, Any]


def varied_project(folder: Path, cases: int, settings: str = "") -> None:
    """Cases whose answers are in a file, no two alike; the same ones each time."""
    pairs = list(pairs_of(cases))
    write_lines(folder / "evalcases" / "cases.jsonl", (pair.case for pair in pairs))
    write_lines(folder / "answers.jsonl", (pair.answer for pair in pairs))
    configure(folder, f'target = "answers:answers.jsonl"\n{settings}')


def pairs_of(cases: int) -> Iterator[Pair]:
    """Yield so many cases with their answers."""
    writer = _Writer(random.Random(SEED))
    for number in range(cases):
        yield _pair(writer, f"case-{number:06}")


def _pair(writer: _Writer, case_id: str) -> Pair:
    luck = writer.luck
    chunks = [_chunk(writer, rank) for rank in range(1, CHUNKS + 1)]
    gold_chunk = chunks[luck.choice((0, 0, 0, 1, 2, 4))]
    gold_answer = writer.sentence(8)
    answer = writer.text(luck.randint(1, 3))
    if luck.random() < SHARE_OF_REFUSALS:
        answer = f"The notes do not say anything about {writer.sentence(5).lower()}."
    elif luck.random() < SHARE_THAT_QUOTES_THE_GOLD:
        answer = f"{answer} {gold_answer}."
    place = {name: gold_chunk[name] for name in ("rel_path", "heading_path")}
    snippet = " ".join(gold_chunk["text"].split()[3:8])
    case = {
        "id": case_id,
        "question": f"{writer.sentence(luck.randint(6, 13))}?",
        "category": luck.choice(("factual", "multi_hop")),
        "difficulty": luck.choice(("easy", "hard")),
        "tags": [writer.word()],
        "gold": {"answer": gold_answer},
        "gold_supports": [{**place, "snippets": [snippet]}],
    }
    latency = {"retrieval_ms": round(20 * luck.random(), 2), "generation_ms": round(900 * luck.random(), 1)}
    recorded = {
        "id": case_id,
        "answer": answer,
        "references": [{"chunk_id": gold_chunk["chunk_id"], **place}],
        "debug": {"retrieved_chunks": chunks, "latency": latency},
    }
    return Pair(case, recorded)


def _chunk(writer: _Writer, rank: int) -> dict[str, Any]:
    luck = writer.luck
    title = writer.word()
    return {
        "chunk_id": f"c{luck.randrange(10**6)}",
        "rel_path": f"{writer.word()}/{title}.md",
        "heading_path": f"# {title} > ## {writer.word()}",
        "text": writer.text(4),
        "rank": rank,
        "score_vector": round(luck.random(), 4),
        "score_final": round(luck.random(), 4),
        "token_count": luck.randint(40, 90),
    }


class _Writer:
    """Writes sentences of made-up words, the first of which are frequent and most of which are rare."""

    def __init__(self, luck: random.Random) -> None:
        self.luck = luck
        self._grammar = GRAMMAR.split()
        self._onsets = ONSETS.split()
        self._vowels = VOWELS.split()
        words: set[str] = set()
        while len(words) < WORDS:
            words.add(self._new_word())
        self._words = sorted(words)
        luck.shuffle(self._words)
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(WORDS)))

    def _new_word(self) -> str:
        syllables = [
            self.luck.choice(self._onsets) + self.luck.choice(self._vowels) for _ in range(self.luck.randint(1, 3))
        ]
        return "".join(syllables) + self.luck.choice(ENDINGS)

    def word(self) -> str:
        return self.luck.choices(self._words, cum_weights=self._weights)[0]

    def sentence(self, length: int) -> str:
        """Return so many words without a full stop; some sentences hold a number or a name."""
        words = [self.word() if place % 2 else self.luck.choice(self._grammar) for place in range(length)]
        if self.luck.random() < 0.2:
            words[self.luck.randrange(length)] = str(self.luck.randrange(3000))
        if self.luck.random() < 0.2:
            words[-1] = words[-1].capitalize()
        return " ".join(words).capitalize()

    def text(self, sentences: int) -> str:
        return " ".join(f"{self.sentence(self.luck.randint(7, 18))}." for _ in range(sentences))
