"""A sweep: every point of a grid scored, few by asking; the best one and the default always by asking."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_rageval.config.files import OWN_FILE, SHARED_FILE
from pytest_rageval.config.project import Project
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import listed
from pytest_rageval.links import docs_page
from pytest_rageval.matching.dialects import namesakes_of
from pytest_rageval.metrics.added import added_metrics
from pytest_rageval.model import EvalCase, Json, Observation
from pytest_rageval.run.extent import Extent
from pytest_rageval.run.finish import FinishedRun
from pytest_rageval.run.ongoing_run import OngoingRun
from pytest_rageval.run.prepare import Preparation, check_can_answer, prepare, run_configuration
from pytest_rageval.run.scoring import NO_ANSWER, AskFailure, Observed
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import OBSERVATIONS
from pytest_rageval.runs.records.observation_line import observed_of
from pytest_rageval.runs.records.record_files import record_at
from pytest_rageval.text import counted
from pytest_rageval.tune.sweep.asking import NOT_TUNED, Answers, AskingLoop
from pytest_rageval.tune.sweep.cutting import cut_to, differing, listing, probe_of, why_not_derivable
from pytest_rageval.tune.sweep.grid import Family, Grid, Point
from pytest_rageval.tune.sweep.outcome import ScoredPoint, Sweep
from pytest_rageval.tune.sweep.ranking import case_parts, difference, in_halves, point_scores
from pytest_rageval.tune.sweep.results_file import SweepFile, SweepRequest

FEW = 0.1
"""Up to this share of cases whose lists are not cut, these alone are asked at every point of the family."""
NOTHING_TO_RANK_BY = (
    "sweep: no point has a score: retrieval is measured where a case has gold or is unanswerable, and the system "
    f"reports its chunks; label some cases, see {docs_page('cases')}"
)
ALL_ASKED = "every point of their group was asked"
THESE_ASKED = "these were asked at every point"


def _first_error(errors: Mapping[str, str]) -> str:
    key, message = next(iter(errors.items()))
    return f"all cases ended in errors, as {key}: {message}"


class SweepRunner:
    """Scores every point of a grid. Used as a context: it closes the target that it makes."""

    def __init__(
        self,
        project: Project,
        options: Mapping[str, Json],
        cases: Sequence[EvalCase],
        files: Sequence[Path],
        request: SweepRequest,
        watch: Callable[[int], None],
        on_finished: Callable[[FinishedRun, Preparation], object],
    ) -> None:
        """Make the target.

        options      those of the command, as settings
        files        where the cases come from
        watch        called with the number of asked cases, to show progress
        on_finished  writes the reports of a run that has ended
        """
        self._project = project
        self._options = options
        self._cases = cases
        self._files = files
        self._request = request
        self._grid = Grid(request.grid, request.indexing)
        self._watch = watch
        self._on_finished = on_finished
        keys = tuple(case.key for case in cases)
        self._choosing = keys
        self._confirming = keys
        if request.confirm:
            conversations = {case.key: case.unit for case in cases}
            self._choosing, self._confirming = in_halves(keys, conversations)
        if not self._choosing or not self._confirming:
            raise SettingsError(f"--confirm: {counted(len(keys), 'case')} cannot be halved; leave it out")
        self._by_key = {case.key: case for case in cases}
        self._points: list[ScoredPoint] = []
        self._notes: dict[str, None] = {}
        self._otherwise: dict[str, set[str]] = {ALL_ASKED: set(), THESE_ASKED: set()}
        """Keys of cases whose lists are not those cut from the widest point, by what was done about it."""
        self._calls = 0
        self._indexings = 0
        self._index: object = None
        """The values of the parameters of indexing that were asked for last."""
        self._default = self._prepared(Point({}))
        self._place_rules = self._default.knowing(namesakes_of(cases), added_metrics(cases)).plan.place_rules
        self._asking = AskingLoop.of(self._default)

    def __enter__(self) -> SweepRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self._asking.close()

    def check(self) -> None:
        """Raise SettingsError unless the target can be asked at every point, before anything is asked."""
        target = self._asking.target
        if not target.is_called:
            raise SettingsError(f"sweep: {target.name} is not asked, its answers are there; name another target")
        # Whatever a system makes of k, no more chunks than that count.
        parameters = [name for name in self._grid.values if name != "k"]
        problem = target.params_problem(parameters)
        if problem:
            raise SettingsError(f"--grid: {problem}")
        check_can_answer(self._default, target, self._cases)
        problems: dict[str, None] = {}
        for point in self._grid.points():
            try:
                self._settings(point)
            except SettingsError as error:
                lines = [problem.replace("--rageval-", "") for problem in error.problems]
                problems |= dict.fromkeys(f"--grid: {line}" for line in lines)
        if problems:
            raise SettingsError(*problems)

    def run(self, file: SweepFile) -> Sweep:
        """Score all points; the file holds those scored so far at any time."""
        self._file = file
        default = self._scored(Point({}), self._measured(Point({})))
        if not default.cases:
            raise SettingsError(f"sweep: as configured, {_first_error(default.errors)}")
        for family in self._grid.families():
            self._points += self._family(family)
            file.keep([default, *self._points])
        if not self._points:
            raise SettingsError(*(f"sweep: {note}" for note in self._notes))
        if all(point.scores.score is None for point in self._points):
            raise SettingsError(NOTHING_TO_RANK_BY)
        self._note_differences()
        self._note_unread()
        ranked = self._with_measured_best()
        best = ranked[0]
        weights = self._request.weights
        confirming = self._confirming
        calls_of_a_point = len(self._cases) * self._project.settings.repeat
        has_own_file = (self._project.root / OWN_FILE).is_file()
        return Sweep(
            points=ranked,
            default=default,
            best_scores=point_scores(best.cases, weights, confirming),
            default_scores=point_scores(default.cases, weights, confirming),
            difference=difference(best.cases, default.cases, weights, confirming),
            is_confirmed=self._request.confirm,
            calls=self._calls,
            calls_of_all=calls_of_a_point * (len(self._points) + 1),
            indexings=self._indexings,
            notes=tuple(self._notes),
            choosing=len(self._choosing),
            confirming=len(confirming),
            varying=self._grid.varying,
            configured_in=OWN_FILE if has_own_file else SHARED_FILE,
        )

    # ── the points of a family ────────────────────────────────────────────────────────────────────────────────

    def _family(self, family: Family) -> Iterator[ScoredPoint]:
        """Measure the widest point, and cut the others from it if a probe shows that this is exact."""
        widest = self._measured(family.widest)
        if not widest.observations:
            self._note(f"{self._named(family.widest)} and its group left out: {_first_error(widest.errors)}")
            return
        yield self._scored(family.widest, widest)
        others = [point for point in family.points if point is not family.widest]
        if not others:
            return
        problem = why_not_derivable(widest.observations.values(), family.cuts)
        if problem is not None:
            self._note(f"every point was asked: {problem}")
        else:
            doubtful = self._probed(family, widest)
            if len(doubtful) <= FEW * len(self._cases):
                self._otherwise[THESE_ASKED].update(doubtful)
                for point in others:
                    yield self._derived(point, widest, doubtful)
                return
            self._otherwise[ALL_ASKED].update(doubtful)
        for point in others:
            yield self._scored(point, self._measured(point))

    def _probed(self, family: Family, widest: Answers) -> list[str]:
        """Return the keys of cases whose lists are not those cut from the widest, asked at one more point each."""
        probes = self._file.probes
        if family.widest.key not in probes:
            point_of: dict[str, Point] = {}
            keys_at: dict[str, list[str]] = {}
            for key, observation in widest.observations.items():
                point = probe_of(observation, family, self._k_of, self._project.settings.gold_by)
                point_of[point.key] = point
                keys_at.setdefault(point.key, []).append(key)
            doubtful = [*widest.errors]
            for point_key, keys in keys_at.items():
                point = point_of[point_key]
                cut = self._cut(point, widest)
                derived = {key: cut[key] for key in keys}
                doubtful += differing(derived, self._asked(point, keys).observations)
            probes[family.widest.key] = doubtful
            self._file.keep(self._points)
        return probes[family.widest.key]

    def _derived(self, point: Point, widest: Answers, doubtful: Sequence[str]) -> ScoredPoint:
        asked = self._asked(point, doubtful).observed
        certain = {key: value for key, value in self._cut(point, widest).items() if key not in doubtful}
        return replace(self._scored(point, Answers({**certain, **asked})), asked=len(doubtful))

    def _cut(self, point: Point, widest: Answers) -> dict[str, Observation]:
        k = self._k_of(point)
        gold_by = self._project.settings.gold_by
        cut: dict[str, Observation] = {}
        for key, observation in widest.observations.items():
            cut[key] = cut_to(observation, point, k, gold_by, self._place_rules)
        return cut

    def _note_differences(self) -> None:
        for consequence, keys in self._otherwise.items():
            if keys:
                self._note(
                    f"results other than predicted from the widest point in {counted(len(keys), 'case')} of "
                    f"{len(self._cases)}, so {consequence}: {listed(sorted(keys))}"
                )

    def _note_unread(self) -> None:
        """Note the parameters whose values all gave the same answers, at any values of the others."""
        for name in self._grid.varying:
            groups: dict[object, list[int]] = {}
            for scored in self._points:
                others = scored.point.only(other for other in scored.point.params if other != name)
                groups.setdefault(others, []).append(scored.answers)
            values = len(self._grid.values[name])
            if all(len(answers) == values and len({*answers}) == 1 for answers in groups.values()):
                self._note(f"no answer changed with {name}: the same chunks are retrieved at all of its values")

    # ── the best point ────────────────────────────────────────────────────────────────────────────────────────

    def _with_measured_best(self) -> tuple[ScoredPoint, ...]:
        """Measure the first point until the first is a measured one; return the points in their order."""
        ranked = self._ranked()
        while ranked[0].run is None:
            derived = ranked[0]
            measured = self._scored(derived.point, self._measured(derived.point))
            moved = [key for key, scores in derived.cases.items() if measured.cases.get(key) != scores]
            if moved:
                self._note(
                    f"{self._named(derived.point)}: results other than derived in {counted(len(moved), 'case')}; "
                    f"what was measured counts: {listed(moved)}"
                )
            self._points = [measured if scored.point is derived.point else scored for scored in self._points]
            self._file.keep(self._points)
            ranked = self._ranked()
        return ranked

    def _ranked(self) -> tuple[ScoredPoint, ...]:
        """Sort best first, those with errors last: their means lack cases. Of equals, fewer chunks first."""

        def order(scored: ScoredPoint) -> tuple[bool, float, int]:
            score = -1.0 if scored.scores.score is None else scored.scores.score
            return bool(scored.errors), -score, self._k_of(scored.point)

        in_order = sorted(self._points, key=order)
        return tuple(replace(scored, rank=rank) for rank, scored in enumerate(in_order, start=1))

    def _scored(self, point: Point, answers: Answers) -> ScoredPoint:
        cases = {key: case_parts(observation) for key, observation in answers.observations.items()}
        scores = point_scores(cases, self._request.weights, self._choosing)
        listings = frozenset((key, listing(observation)) for key, observation in answers.observations.items())
        return ScoredPoint(point, scores, cases, answers.run, errors=answers.errors, answers=hash(listings))

    def _named(self, point: Point) -> str:
        return point.of(self._grid.varying)

    def _note(self, note: str) -> None:
        self._notes[note] = None

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────

    def _settings(self, point: Point, **run: str) -> Settings:
        """Return the settings at this point, and of its `run_id` or `resume`; raise SettingsError for bad values."""
        options = point.options({**self._options, "retrieval_only": True})
        described = {"description": f"sweep {self._file.sweep_id}: {point}"} if run else {}
        return load_settings(self._project.root, {**options, **run, **described}).model_copy(update=NOT_TUNED)

    def _prepared(self, point: Point, **run: str) -> Preparation:
        return prepare(self._project._replace(settings=self._settings(point, **run)), is_before_cases=True)

    def _k_of(self, point: Point) -> int:
        k = point.params.get("k")
        return k if isinstance(k, int) else self._project.settings.k

    def _measured(self, point: Point) -> Answers:
        """Ask the cases at this point as a stored run, or read the run if it has ended.

        The id of the run is the same whenever the sweep is resumed. A run that is resumed asks only what it has no
        record of. Whatever ends this early leaves a run to be resumed.
        """
        name = hashlib.sha256(point.key.encode()).hexdigest()[:8] if point.params else "default"
        run_id = f"{self._file.sweep_id}-{name}"
        stored = StoredRun(self._project.reports / "runs" / run_id)
        if stored.state == "complete":
            return self._stored(stored)
        is_resumed = (stored.path / "config.json").is_file()
        prepared = self._prepared(point, resume=run_id) if is_resumed else self._prepared(point, run_id=run_id)
        prepared = replace(prepared, baseline=None)
        config = run_configuration(prepared, self._cases, self._files)
        run = OngoingRun.open(prepared, config, is_judge_asked=False, loop=self._asking.loop)
        try:
            observed = self._asked_in(run, point)
            expected = frozenset(self._by_key)
            finished = run.finish(Extent(expected, expected))
        finally:
            run.close()
        self._on_finished(finished, prepared)
        return Answers(observed, run_id)

    def _asked_in(self, run: OngoingRun, point: Point) -> dict[str, Observed]:
        """Ask the cases and return their first trials; of a resumed run also those that it has."""
        observed: dict[str, Observed] = {}
        if run.unfinished is not None:
            for case in self._cases:
                observation = run.unfinished.observation(case.key, 0) if run.is_done(case) else None
                if observation is not None:
                    observed[case.key] = observation
        waiting = run.waiting(self._cases)
        evaluations = run.evaluations(waiting, self._asking.target, self._asking.judge)
        for case, evaluated in zip(waiting, evaluations, strict=False):
            trials = evaluated.evaluation.trials
            first = trials[0]
            if first.observation is not None:
                observed[case.key] = first.observation
            else:
                observed[case.key] = AskFailure(first.error or NO_ANSWER, first.timings, first.answer)
            self._count(point, len(trials))
        return observed

    def _asked(self, point: Point, keys: Sequence[str]) -> Answers:
        if not keys:
            return Answers({})
        observed = self._asking.ask(self._prepared(point), [self._by_key[key] for key in keys])
        self._count(point, len(keys))
        return Answers(observed)

    def _count(self, point: Point, asked: int) -> None:
        if asked:
            index = point.only(self._grid.indexing)
            if index != self._index:
                self._indexings += 1
                self._index = index
        self._calls += asked
        self._watch(self._calls)

    def _stored(self, stored: StoredRun) -> Answers:
        places = stored.observation_places()
        if not places and self._cases:
            raise SettingsError(
                f"run {stored.run_id} keeps no {OBSERVATIONS}, from which the sweep would go on; begin a new sweep"
            )
        first = {key: record_at(place) for (key, trial), place in places.items() if trial == 0}
        return Answers({key: observed_of(line, stored.config) for key, line in first.items()}, stored.run_id)
