"""The cases of a stored run as a list: outcome, change against another run, texts cut to a line, worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.case_diff import READ, CaseLines, trials_of
from pytest_rageval.comparison.case_filter import case_id, place_text, why_text
from pytest_rageval.comparison.changes import fall_of, mean_share, shares_of
from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.columns import CaseColumns, Scores
from pytest_rageval.runs.reader import OBSERVATIONS, RESULTS, StoredRun
from pytest_rageval.runs.results_file import journals
from pytest_rageval.runs.row import CaseScores, Row, SharedParts, cases_of, row_records

LINE = 90
"""Characters of a text that a row of the list holds."""
WHY = 140
CHANGES = ("worse", "unmeasured", "new", "same", "fixed")
"""How a case changed since the other run; `same` without one, or if nothing flipped."""
_RANKS = {"error": 1, "failed": 2, "unmeasured": 3, "xfailed": 4}
FullTexts = dict[str, tuple[str | None, str | None]]
"""Question and answer of a case by its key, uncut."""
_SEVERITY = attrgetter("severity")


class CaseTexts(NamedTuple):
    """The texts of a case in a row of the list."""

    question: str
    answer: str
    place: str
    trials: int


class ListedCase(NamedTuple):
    """One case of the list.

    drop        the largest fall of a score since the other run as a share of its scale, negative; 0 if none fell
    fallen      the metric of that fall
    level       mean of the scores as 0 to 1, higher better; 1 without scores
    """

    row: Row
    texts: CaseTexts
    change: str
    drop: float
    fallen: str | None
    level: float

    @property
    def key(self) -> str:
        return self.row.key

    @property
    def id(self) -> str:
        return case_id(self.row.key)

    @property
    def is_failing(self) -> bool:
        return self.row.is_bad or self.row.outcome == "error"

    @property
    def why(self) -> str:
        """Return the failed gates or the error, cut to a line; '' if the case passed."""
        return on_one_line(why_text(self.row), WHY)

    @property
    def severity(self) -> tuple[int, float, float, str]:
        """Return the sort key: newly failing, errors, failing, then the largest falls and the lowest scores."""
        state = self.row.outcome if self.is_failing else self.change
        rank = 0 if self.change == "worse" else _RANKS.get(state, 5)
        return rank, self.drop, self.level, self.key


class Flips(NamedTuple):
    """Keys of cases that flipped between two runs, or are on one side only."""

    worse: frozenset[str] = frozenset()
    fixed: frozenset[str] = frozenset()
    unmeasured: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()

    def by_key(self) -> dict[str, str]:
        """Return the kind of change by case; for a case of several kinds, the first."""
        names = zip(reversed(self._fields), reversed(self), strict=True)
        return {key: name for name, keys in names for key in keys}


def on_one_line(text: str | None, most: int) -> str:
    """Return a text on one line, with … where it is cut."""
    if not text:
        return ""
    line = " ".join(text[: most + 10].split())
    if len(line) <= most < len(text):  # much white space: more text fits
        line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def listed_cases(
    side: Side, flips: Flips, before: Scores | None, names: Mapping[str, str], full_texts: FullTexts | None = None
) -> list[ListedCase]:
    """Return the cases of the run, worst first; `names` maps metrics of the other run to their names in this one.

    `full_texts` receives the texts of which rows hold only the beginning.
    """
    rows, texts = read_rows(side, full_texts)
    shares = shares_of(side.metrics["metrics"])
    earlier = EarlierScores.of(before.cases if before else CaseColumns(), names)
    changes = flips.by_key()
    cases = [
        _list_entry(row, texts.get(row.key, NO_TEXTS), changes.get(row.key, "same"), earlier, shares) for row in rows
    ]
    return sorted(cases, key=_SEVERITY)


class EarlierScores(NamedTuple):
    """The scores of another run, for comparison with each case: most are equal, which costs one comparison of tuples.

    names   the metrics, by their names in this run
    values  the scores of each case in them, None for a missing score
    """

    names: tuple[str, ...]
    values: Mapping[str, tuple[float | None, ...]]

    @classmethod
    def of(cls, cases: CaseColumns, names: Mapping[str, str]) -> EarlierScores:
        """Return the scores of these columns; `names` maps metrics of the other run to their names in this one."""
        columns = cases.renamed(names).scores
        return cls(tuple(columns), dict(zip(cases.case_keys, zip(*columns.values(), strict=True), strict=False)))

    def moved(self, row: Row) -> list[tuple[str, float, float]]:
        """Return name, before and after of the metrics whose scores differ, if both runs have one."""
        before = self.values.get(row.key)
        if before is None:
            return []
        after = tuple(map(row.scores.get, self.names))
        if before == after:
            return []
        return [
            (name, was, now)
            for name, was, now in zip(self.names, before, after, strict=True)
            if was is not None and now is not None and was != now
        ]


NO_TEXTS = CaseTexts("", "", "", 1)


def _list_entry(
    row: Row, texts: CaseTexts, change: str, earlier: EarlierScores, shares: Mapping[str, Callable[[float], float]]
) -> ListedCase:
    drop, fallen = fall_of(earlier.moved(row), shares)
    return ListedCase(row, texts, change, drop, fallen, mean_share(row.scores, shares))


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def read_rows(side: Side, full_texts: FullTexts | None = None) -> tuple[list[Row], dict[str, CaseTexts]]:
    """Return a row for each case, and the texts of those with a record; without records, rows of the score table."""
    texts: dict[str, CaseTexts] = {}
    shared = SharedParts()

    def rows(run: StoredRun) -> Iterator[Row]:
        for record in chain.from_iterable(map(row_records, _files(run, RESULTS))):
            key = record["case_key"]
            trials = max(record["trial"] + 1, texts[key].trials if key in texts else 1)
            texts[key] = _texts(record, trials)
            if full_texts is not None:
                full_texts[key] = record["question"], record["answer"]
            yield _row(record, run, shared)

    if side.run is not None and _files(side.run, RESULTS):
        return cases_of(rows(side.run)), texts
    scores = side.scores
    return ([_bare_row(key, case, scores) for key, case in scores.cases.items()] if scores else []), {}


def _row(record: Mapping[str, Any], run: StoredRun, shared: SharedParts) -> Row:
    try:
        return Row.of(record, shared)
    except (KeyError, TypeError, AttributeError) as error:
        place = f"{run.path / RESULTS}: case {record['case_key']!r}"
        raise SettingsError(f"{place}: not a record: {type(error).__name__}: {error}; was the file changed?") from None


def _texts(record: Mapping[str, Any], trials: int) -> CaseTexts:
    question, answer = on_one_line(record["question"], LINE), on_one_line(record["answer"], LINE)
    return CaseTexts(question, answer, place_text(record), trials)


def _bare_row(key: str, case: CaseScores, scores: Scores) -> Row:
    """Return a row of what the table of scores holds."""
    category = scores.categories.get(key, "uncategorised")
    return Row(
        key=key,
        trial=0,
        outcome=case.outcome,
        content_hash=case.content_hash,
        groups={"category": (category,), "tag": (), "difficulty": (), "domain": (), "answerable": ()},
        scores=case.scores,
        not_applicable=frozenset(),
        failed=(),
        gates_examined=0,
        trial_passed=case.outcome == "passed",
        error_kind=case.error_kind,
        message=None,
        is_blank=False,
        latency={},
        cost={},
        judge=None,
    )


def read_case_lines(run: StoredRun, keys: Set[str], damages: list[str] | None = None) -> dict[str, CaseLines]:
    """Return records and observations of some cases; each file is read once from front to back.

    With `damages`, unreadable observations are listed there and left out; without, the first is a SettingsError.
    """
    try:
        observations = _observations(run, keys)
    except SettingsError as damage:
        if damages is None:
            raise
        damages.append(f"{damage}; expected answers and golds that were not retrieved are not shown")
        observations = {}
    records = _trials(run, RESULTS, keys, READ)
    return {key: CaseLines(trials, observations.get(key, {})) for key, trials in records.items()}


def read_answers(side: Side, keys: Set[str], damages: list[str]) -> dict[str, CaseLines]:
    """Read the records of some cases, and observations of those whose answer is cut in its record; `damages` as above.

    For a baseline whose run is gone, read the records stored next to it.
    """
    if side.run is None:
        return {key: CaseLines({record["trial"]: record}, {}) for key, record in side.records(keys).items()}
    try:
        return _answers(side.run, keys)
    except SettingsError as damage:
        damages.append(f"{damage}; cases are not shown as they were before")
        return {}


def _answers(run: StoredRun, keys: Set[str]) -> dict[str, CaseLines]:
    records = trials_of(run.path / RESULTS, keys)
    cut = {
        key for key, trials in records.items() if any((each["answer"] or "").endswith("…") for each in trials.values())
    }
    observations = _observations(run, cut)
    return {key: CaseLines(trials, observations.get(key, {})) for key, trials in records.items()}


def _observations(run: StoredRun, keys: Set[str]) -> dict[str, dict[int, Mapping[str, Any]]]:
    return _trials(run, OBSERVATIONS, keys, {"case_key", "trial", "case"})


def _trials(run: StoredRun, name: str, keys: Set[str], fields: Set[str]) -> dict[str, dict[int, Mapping[str, Any]]]:
    """Return the lines of one kind by case and trial."""
    lines: dict[str, dict[int, Mapping[str, Any]]] = {}
    for path in _files(run, name) if keys else ():
        for key, trials in trials_of(path, keys, fields).items():
            lines.setdefault(key, {}).update(trials)
    return lines


def _files(run: StoredRun, name: str) -> list[Path]:
    """Return the run's files of this name: its own and, if it has not ended or was killed, those of its workers."""
    return [path for path in (run.path / name, *journals(run.path, name)) if path.is_file()]


class Fall(NamedTuple):
    """One case in one metric: its fall as a share of the scale, negative; its number in the list; its scores."""

    share: float
    number: int
    before: float
    after: float


def falls_by_metric(
    cases: Sequence[ListedCase],
    before: CaseColumns,
    metrics: Mapping[str, Mapping[str, Any]],
    names: Mapping[str, str],
) -> dict[str, list[Fall]]:
    """Return the falls of each metric, the largest first; `names` maps the other run's metrics to this run's names."""
    earlier = EarlierScores.of(before, names)
    widths = {name: signed_width(metric) for name, metric in metrics.items()}
    falls: dict[str, list[Fall]] = {}
    for number, case in enumerate(cases):
        for name, was, now in earlier.moved(case.row) if case.drop < 0 else ():
            if name in widths and (share := (now - was) / widths[name]) < 0:
                falls.setdefault(name, []).append(Fall(share, number, was, now))
    return {name: sorted(falls[name]) for name in sorted(falls)}


def signed_width(metric: Mapping[str, Any]) -> float:
    """Return the width of a metric's scale, negative if lower is better."""
    low, high = metric["scale"]
    return float(high - low) if metric["better"] == "higher" else float(low - high)
