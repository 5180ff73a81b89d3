"""A sweep: every point of a grid scored, few by asking; the best one and the default always by asking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_rageval.config.files import OWN_FILE, SHARED_FILE
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import listed
from pytest_rageval.matching.dialects import ANY_PLACES, PlaceRules
from pytest_rageval.matching.places import GoldBy, observe
from pytest_rageval.model import Chunk, EvalCase, Observation
from pytest_rageval.text import counted
from pytest_rageval.tools.sweep.bench import Answers, Bench
from pytest_rageval.tools.sweep.grid import Family, Point
from pytest_rageval.tools.sweep.ranking import (
    CaseParts,
    Gain,
    PointScores,
    Weights,
    case_parts,
    difference,
    in_halves,
    point_scores,
)

FEW = 0.1
"""Up to this share of cases whose lists are not cut, these alone are asked at every point of the family."""
Probes = MutableMapping[str, list[str]]
"""By the widest point of a family, keys of the cases whose lists are not those cut from it."""
NOTHING_TO_RANK_BY = (
    "sweep: no point has a score: retrieval is measured where a case has gold or is unanswerable, and the system "
    "reports its chunks; label some cases, see docs/cases.md"
)
ALL_ASKED, THESE_ASKED = "every point of their group was asked", "these were asked at every point"
Listing = tuple[tuple[object, ...], ...]
"""The chunks of an answer in order, by their identity."""


@dataclass(frozen=True)
class ScoredPoint:
    """A point with its scores over the cases that choose.

    run      the stored run of a measured point; None for a derived one
    asked    for a derived point, how many cases were asked all the same
    errors   cases that could not be asked, with the reason
    answers  equal for points at which all cases retrieve the same
    """

    point: Point
    scores: PointScores
    cases: Mapping[str, CaseParts] = field(repr=False)
    run: str | None = None
    asked: int = 0
    errors: Mapping[str, str] = field(default_factory=dict)
    rank: int = 0
    answers: int = 0

    @property
    def how(self) -> str:
        return "derived" if self.run is None else "measured"


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep.

    points           best first
    best_scores, default_scores, difference
                     of the best point and the default, on the cases that decide the verdict
    is_confirmed     these are not the cases that chose
    notes            how points were scored
    varying          the parameters in which points differ
    configured_in    the file that configures the project
    """

    points: tuple[ScoredPoint, ...]
    default: ScoredPoint
    best_scores: PointScores
    default_scores: PointScores
    difference: Gain
    is_confirmed: bool
    calls: int
    calls_of_all: int
    indexings: int
    notes: tuple[str, ...]
    choosing: int
    confirming: int
    varying: tuple[str, ...]
    configured_in: str = SHARED_FILE

    @property
    def best(self) -> ScoredPoint:
        return self.points[0]

    @property
    def toml(self) -> str:
        """Return lines for the project's configuration that make the best point the default."""
        return self.best.point.toml(is_own_file=self.configured_in == OWN_FILE)

    @property
    def saved(self) -> int:
        """Return how many questions were saved, compared with asking every point."""
        return max(0, self.calls_of_all - self.calls)

    @property
    def is_better(self) -> bool:
        """Return True if the best point is better than the default by more than chance."""
        return self.difference.is_distinguishable and self.difference.delta > 0

    @property
    def front(self) -> tuple[ScoredPoint, ...]:
        """Return the points that no other beats in both recall and negative accuracy, by recall; of equals the best."""
        axes = [(point, _axes(point)) for point in self.points]
        front = [
            point
            for point, (recall, negative) in axes
            if not any(r >= recall and n >= negative and (r > recall or n > negative) for _, (r, n) in axes)
        ]
        return tuple(sorted({_axes(point): point for point in reversed(front)}.values(), key=_axes))


def _axes(point: ScoredPoint) -> tuple[float, float]:
    return (point.scores.recall or 0.0, point.scores.negative_accuracy or 0.0)


Stage = Callable[[Sequence[ScoredPoint]], None]
"""Called with the points scored so far."""


def _first_error(errors: Mapping[str, str]) -> str:
    key, message = next(iter(errors.items()))
    return f"all cases ended in errors, as {key}: {message}"


class SweepRunner:
    """Scores every point of a bench's grid; chooses on one half of the cases if the other half is to confirm."""

    def __init__(self, bench: Bench, weights: Weights, keep: Stage, probes: Probes, *, is_confirmed: bool) -> None:
        """`probes`: what probes have found already; those of this sweep are added, and `keep` is called after each."""
        self._bench, self._weights, self._keep, self._probes = bench, weights, keep, probes
        keys = [case.key for case in bench.cases]
        self._choosing, other = in_halves(keys) if is_confirmed else (tuple(keys), tuple(keys))
        if not self._choosing or not other:
            raise SettingsError(f"--confirm: {counted(len(keys), 'case')} cannot be halved; leave it out")
        self._confirming, self._is_confirmed = other, is_confirmed
        self._by_key: Mapping[str, EvalCase] = {case.key: case for case in bench.cases}
        self._points: list[ScoredPoint] = []
        self._notes: list[str] = []
        self._otherwise: dict[str, set[str]] = {ALL_ASKED: set(), THESE_ASKED: set()}
        """Keys of cases whose lists are not those cut from the widest point, by what was done about it."""

    def run(self) -> Sweep:
        default = self._scored(Point({}), self._bench.measured(Point({})))
        if not default.cases:
            raise SettingsError(f"sweep: as configured, {_first_error(default.errors)}")
        for family in self._bench.grid.families():
            self._points += self._family(family)
            self._keep([default, *self._points])
        if not self._points:
            raise SettingsError(*(f"sweep: {note}" for note in self._notes))
        if all(point.scores.score is None for point in self._points):
            raise SettingsError(NOTHING_TO_RANK_BY)
        self._note_differences()
        self._note_unread()
        self._measure_best()
        ranked = self._ranked()
        best, bench = ranked[0], self._bench
        return Sweep(
            points=ranked,
            default=default,
            best_scores=point_scores(best.cases, self._weights, self._confirming),
            default_scores=point_scores(default.cases, self._weights, self._confirming),
            difference=difference(best.cases, default.cases, self._weights, self._confirming),
            is_confirmed=self._is_confirmed,
            calls=bench.calls,
            calls_of_all=len(bench.cases) * bench.project.settings.repeat * (len(self._points) + 1),
            indexings=bench.indexings,
            notes=tuple(self._notes),
            choosing=len(self._choosing),
            confirming=len(self._confirming),
            varying=bench.grid.varying,
            configured_in=OWN_FILE if (bench.project.root / OWN_FILE).is_file() else SHARED_FILE,
        )

    # ── the points of a family ────────────────────────────────────────────────────────────────────────────────

    def _family(self, family: Family) -> Iterator[ScoredPoint]:
        """Measure the widest point, and cut the others from it if a probe shows that this is exact."""
        widest = self._bench.measured(family.widest)
        if not widest.observations:
            self._note(f"{self._named(family.widest)} and its group left out: {_first_error(widest.errors)}")
            return
        yield self._scored(family.widest, widest)
        others = [point for point in family.points if point is not family.widest]
        if not others:
            return
        if (problem := why_not_derivable(widest.observations.values(), family.cuts)) is not None:
            self._note(f"every point was asked: {problem}")
        else:
            doubtful = self._probe(family, widest)
            is_derived = len(doubtful) <= FEW * len(self._bench.cases)
            self._otherwise[THESE_ASKED if is_derived else ALL_ASKED] |= {*doubtful}
            if is_derived:
                yield from (self._derived(point, widest, doubtful) for point in others)
                return
        yield from (self._scored(point, self._bench.measured(point)) for point in others)

    def _note_differences(self) -> None:
        for consequence, keys in self._otherwise.items():
            if keys:
                self._note(
                    f"{counted(len(keys), 'case')} of {len(self._bench.cases)} came otherwise than cut from the widest "
                    f"point, so {consequence}: {listed(sorted(keys))}"
                )

    def _note_unread(self) -> None:
        """Note the parameters without any effect: whatever else was set, all their values came to the same answers."""
        for name in self._bench.grid.varying:
            groups: dict[object, set[int]] = {}
            for scored in self._points:
                others = scored.point.only(other for other in scored.point.params if other != name)
                groups.setdefault(others, set()).add(scored.answers)
            if all(len(answers) == 1 for answers in groups.values()):
                self._note(f"no answer changed with {name}: the same chunks came at all of its values")

    def _probe(self, family: Family, widest: Answers) -> tuple[str, ...]:
        """Return the keys of cases whose lists are not those cut from the widest, asked at one more point each."""
        if (probed := self._probes.get(family.widest.key)) is not None:
            return tuple(probed)
        bench = self._bench
        keys_at: dict[str, tuple[Point, list[str]]] = {}
        for key, observation in widest.observations.items():
            point = probe_of(observation, family, bench.k_of, bench.project.settings.gold_by)
            keys_at.setdefault(point.key, (point, []))[1].append(key)
        doubtful = [*widest.errors]
        for point, keys in keys_at.values():
            real = bench.asked(point, [self._by_key[key] for key in keys]).observations
            derived = self._cut(point, widest).observations
            doubtful += differing({key: derived[key] for key in keys}, real)
        self._probes[family.widest.key] = doubtful
        self._keep(self._points)
        return tuple(doubtful)

    def _derived(self, point: Point, widest: Answers, doubtful: Sequence[str]) -> ScoredPoint:
        asked = self._bench.asked(point, [self._by_key[key] for key in doubtful])
        derived = self._cut(point, widest).observations
        certain = {key: value for key, value in derived.items() if key not in doubtful}
        return replace(self._scored(point, Answers({**certain, **asked.observed})), asked=len(doubtful))

    def _cut(self, point: Point, widest: Answers) -> Answers:
        k, gold_by = self._bench.k_of(point), self._bench.project.settings.gold_by
        rules = self._bench.place_rules
        return Answers({key: cut_to(value, point, k, gold_by, rules) for key, value in widest.observations.items()})

    # ── the best point ────────────────────────────────────────────────────────────────────────────────────────

    def _measure_best(self) -> None:
        """Measure the first point until the first is a measured one."""
        while (best := self._ranked()[0]).run is None:
            measured = self._scored(best.point, self._bench.measured(best.point))
            position = next(at for at, each in enumerate(self._points) if each.point is best.point)
            moved = [key for key, scores in best.cases.items() if measured.cases.get(key) != scores]
            if moved:
                self._note(
                    f"{self._named(best.point)}: {counted(len(moved), 'case')} came otherwise than derived, what was "
                    f"measured counts: {listed(moved)}"
                )
            self._points[position] = measured
            self._keep(self._points)

    def _ranked(self) -> tuple[ScoredPoint, ...]:
        """Sort best first, those with errors last: their means lack cases. Of equals, fewer chunks first."""

        def order(numbered: tuple[int, ScoredPoint]) -> tuple[bool, float, int, int]:
            number, scored = numbered
            score = -1.0 if scored.scores.score is None else scored.scores.score
            return bool(scored.errors), -score, self._bench.k_of(scored.point), number

        ranked = sorted(enumerate(self._points), key=order)
        return tuple(replace(scored, rank=rank) for rank, (_, scored) in enumerate(ranked, start=1))

    def _scored(self, point: Point, answers: Answers) -> ScoredPoint:
        cases = {key: case_parts(observation) for key, observation in answers.observations.items()}
        scores = point_scores(cases, self._weights, self._choosing)
        same = hash(frozenset((key, listing(observation)) for key, observation in answers.observations.items()))
        return ScoredPoint(point, scores, cases, answers.run, errors=answers.errors, answers=same)

    def _named(self, point: Point) -> str:
        return point.of(self._bench.grid.varying)

    def _note(self, note: str) -> None:
        if note not in self._notes:
            self._notes.append(note)


def why_not_derivable(observations: Iterable[Observation], cuts: Sequence[str]) -> str | None:
    """Return why lists cannot be cut: the system reports no chunks, or no scores; None if they can."""
    for observation in observations:
        chunks = observation.answer.chunks
        if chunks is None:
            return f"no retrieved chunks are reported, as for {observation.case.id}"
        if "min_score" in cuts and any(chunk.score_final is None for chunk in chunks):
            return f"chunks come without score_final, as for {observation.case.id}"
    return None


def cut_to(
    observation: Observation, point: Point, k: int, gold_by: GoldBy, rules: PlaceRules = ANY_PLACES
) -> Observation:
    """Derive a case's observation at a point from the one at the widest point; `k` is the point's."""
    least = point.params.get("min_score")
    chunks: Sequence[Chunk] = observation.answer.chunks or ()
    if least is not None:
        chunks = [chunk for chunk in chunks if chunk.score_final is not None and chunk.score_final >= least]
    answer = replace(observation.answer, chunks=tuple(chunks[:k]))
    return observe(
        observation.case, answer, k=k, asked_k=k, gold_by=gold_by, refusals=observation.refusals, rules=rules
    )


def probe_of(observation: Observation, family: Family, k_of: Callable[[Point], int], gold_by: GoldBy) -> Point:
    """Return the point that best shows whether a case's list is cut: the highest threshold, with a k of its own.

    That is the smallest k for which there is still room below the chunks over the threshold: a system that adds others
    when it finds few fills it. If none has room, the smallest k of all: there a list is cut by number.
    """
    points = family.by_score
    for point in points:
        k = k_of(point)
        if len(cut_to(observation, point, k + 1, gold_by).answer.chunks or ()) < k:
            return point
    return points[0]


def listing(observation: Observation) -> Listing:
    """Return the retrieved chunks in order, with their scores; the text of the answer if no chunks are reported."""
    if observation.answer.chunks is None:
        return ((observation.answer.text,),)
    return tuple(
        (
            chunk.chunk_id or chunk.doc_id,
            chunk.rel_path,
            chunk.heading_path,
            chunk.start_line,
            chunk.score_final,
            None if chunk.chunk_id or chunk.doc_id else chunk.text,
        )
        for chunk in observation.answer.chunks
    )


def differing(derived: Mapping[str, Observation], real: Mapping[str, Observation]) -> tuple[str, ...]:
    """Return the keys of cases that retrieve something else when asked, or could not be asked."""
    return tuple(key for key in derived if key not in real or listing(derived[key]) != listing(real[key]))
