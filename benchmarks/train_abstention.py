"""Train the detector of abstentions: `python benchmarks/train_abstention.py [--measure]`.

Writes `pytest_rageval/abstention/weights.bin` from the answers in tests/data/abstention that are labelled
`abstained` or `answered`.
`--measure` prints, as Markdown, what the detector makes of answers that it was not trained on: whole sources of real
answers and whole writers left out. The features are those of the package; numpy and scipy are needed for training only.

Three things are learned in turn: the weights of the wording; on answers with passages, how far the share that the
passages hold shifts it; and two limits, between which an answer is undecided. The second and the third are learned from
scores of answers that were left out of the first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.sparse

from pytest_rageval.abstention.detector import DoubtZone, LearnedWeights, shift_by
from pytest_rageval.abstention.evidence import held_share
from pytest_rageval.abstention.features import TABLE, TABLES, FeatureBlock, features_of, sentences_of
from pytest_rageval.abstention.own_words import own_words
from pytest_rageval.stats.intervals import wilson

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data" / "abstention"
JUDGED = ROOT / "tests" / "data" / "correctness" / "judged.jsonl"
WEIGHTS = ROOT / "pytest_rageval" / "abstention" / "weights.bin"

WRITTEN_COUNTS = 0.7
"""A written answer counts less than a real one: false alarms on real answers matter most."""
SENTENCE_COUNTS, FIRST_SENTENCES = 0.3, 3
"""Single sentences are learned too: the first ones of an answer, and of an abstention the one that declines most."""
RIDGE, SMOOTHING = 0.05, 1.0
ROUNDS = 2
FOLDS = 4
ALLOWED_FALSE_ALARMS = 0.01
"""Share of real answers that may be taken for abstentions."""
ALLOWED_DOUBT = 0.04
"""Share of real outputs that may be undecided; the rest of a tenth is for outputs unlike those."""
ORDINARY = "QA-Eval"
"""The source of ordinary answers: hardly one of them is near the limits, so they are left out where those are set."""
CLEAREST = 8.0
"""Log odds beyond which a text gets no clearer: one odd row would decide the shift otherwise."""

Matrix = Any
Vector = Any


HEAD = """\
| answers not trained on | abstentions seen | undecided | false alarms | undecided | partial, taken for abstentions |
| --- | --- | --- | --- | --- | --- |"""


class Row(NamedTuple):
    """A labelled answer in its own words; its group is the source of a real one, or the writer."""

    question: str
    answer: str
    label: str
    language: str
    group: str
    is_real: bool
    evidence: float | None
    """Share of the answer that its passages hold; None without passages."""
    is_announcement: bool = False


class Model(NamedTuple):
    """Weights of buckets, and the bias."""

    weights: Vector
    bias: float

    def scores(self, features: Matrices) -> Vector:
        """Return the score of each row."""
        highest = most(sentences := features.sentences @ self.weights, features.owners) @ sentences
        return features.answers @ self.weights + highest + self.bias


class Matrices(NamedTuple):
    """What is computed of the rows once, whatever part of them is trained on."""

    answers: Matrix
    sentences: Matrix
    """What each sentence adds to its answer where it declines most."""
    alone: Matrix
    """Each sentence as an answer of its own, without the question."""
    owners: Vector
    """The row that a sentence stands in."""


def main(arguments: Sequence[str]) -> int:
    """Train, and measure if asked to."""
    parser = argparse.ArgumentParser(description="Train the detector of abstentions")
    parser.add_argument("--measure", action="store_true", help="print figures on answers not trained on; write nothing")
    measures = parser.parse_args(arguments).measure
    every = [*read_rows(DATA / "labelled.jsonl"), *right_answers()]
    for path in written_files():
        every += read_rows(path)
    rows = [row for row in every if row.label != "announcement"]
    features = features_of_rows(rows)
    by_group = left_out(rows, features, lambda row: row.group)
    by_question = left_out(rows, features, lambda row: fold(row.question) if row.is_real else None)
    shift, weight = evidence_for(rows, by_group)
    limits = limits_for(rows, by_question)
    if measures:
        verdicts = Verdicts(by_group, shift, weight, limits)
        known = Verdicts(by_question, shift, weight, limits)
        print("\n".join([*table(rows, verdicts, known), *announcements(every)]))
        return 0
    model = train(rows, features, np.array([row.label != "partial" for row in rows]))
    write(model, limits, shift, weight)
    return 0


def written_files() -> list[Path]:
    """The writers' files that are trained on; those in `held_out` never are."""
    return sorted((DATA / "written").glob("*.jsonl"))


def read_rows(path: Path) -> Iterator[Row]:
    """Read labelled answers."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        own = own_words(row["answer"])
        passages = row.get("chunks")
        held = held_share(row["question"], own.text, passages) if passages else None
        group = row.get("source", path.stem)
        yield Row(
            row["question"], own.text, row["label"], row["language"], group, "source" in row, held, own.is_announcement
        )


def right_answers() -> Iterator[Row]:
    """Read every fourth answer of a chat model that people judged right: an ordinary answer, whatever it looks like."""
    judged = [json.loads(line) for line in JUDGED.read_text(encoding="utf-8").splitlines()]
    right = [row for row in judged if row["correct"] and row["system"] != "fid"]
    for row in right[::4]:
        yield Row(
            row["question"], own_words(row["answer"]).text, "answered", "en", ORDINARY, is_real=True, evidence=None
        )


def fold(question: str) -> str:
    """Return in which fold the answers to the question are."""
    return f"fold {hashlib.sha256(question.encode()).digest()[0] % FOLDS}"


def features_of_rows(rows: Sequence[Row]) -> Matrices:
    """Compute the features of all rows and of their sentences."""
    read = [features_of(row.answer, row.question) for row in rows]
    alone = [features_of(sentence) for row in rows for sentence in sentences_of(row.answer)]
    return Matrices(
        matrix([features.answer for features in read]),
        matrix([blocks for features in read for blocks in features.sentences]),
        matrix([(*features.answer, *features.sentences[0]) for features in alone]),
        np.array([place for place, features in enumerate(read) for _ in features.sentences]),
    )


def matrix(rows: Sequence[Sequence[FeatureBlock]]) -> Matrix:
    """Return a row of features for each row of blocks."""
    values: list[float] = []
    columns: list[int] = []
    ends = [0]
    for blocks in rows:
        for block in blocks:
            places = block.all_places()
            columns += [block.table * TABLE + place for place in places]
            values += [block.scale / max(len(places), 1) ** 0.5] * len(places)
        ends.append(len(columns))
    made = scipy.sparse.csr_matrix(
        (np.array(values, np.float32), columns, ends), shape=(len(rows), len(TABLES) * TABLE)
    )
    made.sum_duplicates()
    return made


def train(rows: Sequence[Row], features: Matrices, chosen: Vector) -> Model:
    """Train on the chosen rows, again and again with the sentences that then seem to decline most."""
    counts = np.array([1.0 if row.is_real else WRITTEN_COUNTS for row in rows])
    labels = np.array([row.label == "abstained" for row in rows])
    owners = features.owners
    places = np.arange(len(owners))
    numbers = places - np.searchsorted(owners, owners)
    said = np.flatnonzero(chosen[owners] & ~labels[owners] & (numbers < FIRST_SENTENCES))
    share = scipy.sparse.csr_matrix((1 / np.bincount(owners)[owners], (owners, places)), dtype=np.float32)
    declining = np.array([], int)
    weights = None
    for _ in range(ROUNDS):
        if weights is not None:
            share = most(features.sentences @ weights, owners)
            declining = most(features.alone @ weights, owners)[chosen & labels].indices
        x = scipy.sparse.vstack(
            [(features.answers + share @ features.sentences)[chosen], features.alone[said], features.alone[declining]]
        ).tocsr()
        y = np.concatenate([labels[chosen], np.zeros(len(said), bool), np.ones(len(declining), bool)])
        parts = np.concatenate([owners[said], owners[declining]])
        weight = np.concatenate([counts[chosen], counts[parts] * SENTENCE_COUNTS])
        used = np.flatnonzero(np.bincount(x.indices, minlength=x.shape[1]) > 1)
        x = x[:, used]
        # As in Wang and Manning 2012: features count by how far they differ between the classes.
        contrast = log_ratio(x, y, weight)
        fitted = fit((x @ scipy.sparse.diags(contrast.astype(np.float32))).tocsr(), y, weight)
        weights = np.zeros(len(TABLES) * TABLE)
        weights[used] = fitted[:-1] * contrast
    return Model(weights, float(fitted[-1]))


def most(scores: Vector, owners: Vector) -> Matrix:
    """Return a matrix that chooses the sentence with the highest score of each row."""
    order = np.lexsort((-scores, owners))
    firsts = order[np.unique(owners[order], return_index=True)[1]]
    ones = np.ones(len(firsts), np.float32)
    return scipy.sparse.csr_matrix((ones, (owners[firsts], firsts)), shape=(owners.max() + 1, len(owners)))


def log_ratio(x: Matrix, y: Vector, weight: Vector) -> Vector:
    """Return how far the frequencies of each feature differ between the two classes."""
    shares = [SMOOTHING + x.T @ (weight * of_class) for of_class in (y, ~y)]
    return np.abs(np.log(shares[0] / shares[0].sum()) - np.log(shares[1] / shares[1].sum()))


def fit(x: Matrix, y: Vector, weight: Vector) -> Vector:
    """Return weights and bias of a logistic regression with a ridge."""
    sign = np.where(y, 1.0, -1.0)
    turned = x.T.tocsr()

    def loss(values: Vector) -> tuple[float, Vector]:
        margin = sign * (x @ values[:-1].astype(np.float32) + values[-1])
        pull = -sign * weight / (1 + np.exp(np.clip(margin, -500, 500)))
        slope = np.append(turned @ pull.astype(np.float32) + RIDGE * values[:-1], pull.sum())
        return float(weight @ np.logaddexp(0, -margin) + RIDGE / 2 * (values[:-1] @ values[:-1])), slope

    zeros = np.zeros(x.shape[1] + 1)
    return scipy.optimize.minimize(loss, zeros, jac=True, method="L-BFGS-B", options={"maxiter": 40}).x


def left_out(rows: Sequence[Row], features: Matrices, part: Callable[[Row], str | None]) -> Vector:
    """Score each row by a model that was trained without its part; rows without a part are always trained on."""
    parts = np.array([part(row) or "" for row in rows])
    use = np.array([row.label != "partial" for row in rows])
    scores = np.full(len(rows), np.nan)
    for name in sorted({*parts} - {""}):
        model = train(rows, features, use & (parts != name))
        scores[parts == name] = model.scores(features)[parts == name]
    return scores


class Verdicts:
    """What the detector says of rows, each scored by a model that was trained without its source or writer."""

    def __init__(self, scores: Vector, shift: float, weight: float, limits: DoubtZone) -> None:
        self._scores, self._shift, self._weight, self._limits = scores, shift, weight, limits

    def of(self, row: Row, place: int) -> bool | None:
        """Return whether the row abstains; None in the zone of doubt."""
        score = self._scores[place]
        if row.evidence is not None:
            score += shift_by(row.evidence, self._shift, self._weight)
        if score >= self._limits.declines:
            return True
        return False if score < self._limits.answers else None


def evidence_for(rows: Sequence[Row], scores: Vector) -> tuple[float, float]:
    """Return by how much the log odds rise without evidence, and how much full evidence takes away."""
    chosen = [place for place, row in enumerate(rows) if row.evidence is not None and row.label != "partial"]
    declined = np.array([rows[place].label == "abstained" for place in chosen])
    held = np.array([rows[place].evidence for place in chosen])
    columns = [np.clip(scores[chosen], -CLEAREST, CLEAREST), held, np.ones(len(chosen))]
    x = np.stack(columns, axis=1)
    sign = np.where(declined, 1.0, -1.0)

    def loss(values: Vector) -> float:
        return float(np.logaddexp(0, -sign * (x @ values)).mean())

    of_text, of_evidence, alone = scipy.optimize.minimize(loss, np.zeros(3)).x
    return round(float(alone / of_text), 2), round(float(-of_evidence / of_text), 2)


def limits_for(rows: Sequence[Row], scores: Vector) -> DoubtZone:
    """Return the limits at which few real answers are taken for abstentions, and few real outputs are undecided."""
    real = np.array([row.is_real and row.group != ORDINARY for row in rows])
    answered = np.array([row.label == "answered" for row in rows])
    alarms = np.sort(scores[real & answered])[::-1]
    highest = round(float(alarms[int(ALLOWED_FALSE_ALARMS * len(alarms))]) + 0.005, 2)
    below = np.sort(scores[real & (scores < highest)])[::-1]
    lowest = round(float(below[int(ALLOWED_DOUBT * real.sum())]), 2)
    return DoubtZone(lowest, highest)


def table(rows: Sequence[Row], verdicts: Verdicts, known: Verdicts) -> Iterator[str]:
    """Yield recall and false alarms with Wilson intervals, the undecided, and partial answers beside."""
    declined = [verdicts.of(row, place) for place, row in enumerate(rows)]
    yield HEAD
    for language in ("en", "ko"):
        of_language = [row.is_real and row.language == language for row in rows]
        verdicts_of_known = [known.of(row, place) if row.is_real else None for place, row in enumerate(rows)]
        yield line(f"real, {language}, known sources, other questions", rows, verdicts_of_known, of_language)
    for name, chosen in parts_of(rows):
        yield line(name, rows, declined, chosen)


def parts_of(rows: Sequence[Row]) -> Iterator[tuple[str, list[bool]]]:
    """Yield the parts of the rows that have a line of their own."""
    for is_real, kind in ((True, "real"), (False, "written")):
        yield f"{kind}, all", [row.is_real is is_real for row in rows]
        for language in dict.fromkeys(row.language for row in rows):
            yield f"{kind}, {language}", [row.is_real is is_real and row.language == language for row in rows]
        for group in sorted({row.group for row in rows if row.is_real is is_real}):
            yield f"{kind}, {group}", [row.group == group for row in rows]
    yield "written, with passages", [row.evidence is not None for row in rows]


def line(name: str, rows: Sequence[Row], declined: Sequence[bool | None], chosen: Sequence[bool]) -> str:
    """Return one row of the table."""
    cells = []
    for label, is_split in (("abstained", True), ("answered", True), ("partial", False)):
        verdicts = [d for row, d, c in zip(rows, declined, chosen, strict=True) if c and row.label == label]
        cells.append(share(verdicts.count(True), len(verdicts)))
        if is_split:
            cells.append(f"{verdicts.count(None) / len(verdicts):.1%}" if verdicts else "")
    return f"| {name} | {' | '.join(cells)} |"


def announcements(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how many announcements are seen, and how much else is taken for one."""
    for label in ("announcement", "abstained", "answered", "partial"):
        chosen = [row.is_announcement for row in rows if row.label == label]
        yield f"taken for announcements among {label}: {share(sum(chosen), len(chosen))}"


def share(count: int, of: int) -> str:
    """Return a share with its counts and its interval."""
    if not of:
        return ""
    low, high = wilson(count / of, of)
    return f"{count} of {of}: {count / of:.1%} ({low:.1%} to {high:.1%})"


def write(model: Model, limits: DoubtZone, shift: float, weight: float) -> None:
    """Write the weights, each rounded to a byte."""
    step = float(np.abs(model.weights).max() / 127)
    rounded = np.rint(model.weights / step).astype(np.int8)
    # Few digits, so that the last bit of a sum decides nothing.
    learned = LearnedWeights(
        bias=round(model.bias, 4),
        step=float(f"{step:.6g}"),
        limits=limits,
        passage_limits=limits,
        evidence_shift=shift,
        evidence_weight=weight,
        tables=[],
    )
    head = learned._asdict()
    del head["tables"]
    WEIGHTS.write_bytes(json.dumps(head).encode() + b"\n" + rounded.tobytes())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
