"""The filter words of the report page over a stored run: `outcome:failed changed:worse -tag:slow mrr<0.5 "words"`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.runs.disk.reader import StoredRun
from pytest_rageval.runs.row import Row, cases_of

CHANGES = {"worse": "flipped_to_fail", "fixed": "flipped_to_pass", "unmeasured": "unmeasured", "new": "only_after"}
"""What became of a case since the baseline, by the list of metrics.json that names such cases; else it is `same`."""
GROUPS = ("category", "difficulty", "domain", "tag")
WORDS = ("outcome", "changed", *GROUPS, "file", "id", "layer")
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "=": operator.eq,
}  # fmt: skip
_TERM = re.compile(r'(-?)(?:([^\W\d][\w.@-]*?)(:|<=|>=|<|>|=))?("(?:[^"\\]|\\.)*"|[^\s"]+)')


class FilteredCase(NamedTuple):
    """What a filter asks of one case: its row, what became of it, the layers of its failed gates, its texts."""

    row: Row
    change: str
    layers: frozenset[str]
    text: str

    def values(self, word: str) -> tuple[str, ...]:
        """What the case has for one of the words that are compared as a whole."""
        if word == "outcome":
            return (self.row.outcome,)
        if word == "changed":
            return (self.change,)
        if word == "file":
            return (self.row.key.partition("::")[0],)
        if word == "layer":
            return tuple(self.layers)
        failed_tags = (tag for _, tag in self.row.failed) if word == "tag" else ()
        return (*self.row.groups[word], *failed_tags)


Test = Callable[[FilteredCase], bool]


def filtered_keys(run: StoredRun, expression: str, option: str) -> frozenset[str]:
    """Keys of the cases of a finished run that meet all terms; a SettingsError names the `option` and the term."""
    cases = list(_cases(run))
    try:
        tests = list(_tests(expression, cases, run))
    except ValueError as error:
        raise SettingsError(f"{option}: {expression!r}: {error}") from None
    return frozenset(case.row.key for case in cases if all(test(case) for test in tests))


def _cases(run: StoredRun) -> Iterator[FilteredCase]:
    comparison = run.finished_metrics["comparison"] or {}
    change_of = {key: change for change, name in CHANGES.items() for key in comparison.get(name, ())}
    layer_of = {name: metric["layer"] for name, metric in run.finished_metrics["metrics"].items()}
    texts: dict[str, str] = {}

    def rows() -> Iterator[Row]:
        for record in run.records():
            texts[record["case_key"]] = _text(record)
            yield Row.of(record)

    for row in cases_of(rows()):
        layers = frozenset(layer_of[name] for name, _ in row.failed if name in layer_of)
        yield FilteredCase(row, change_of.get(row.key, "same"), layers, texts[row.key])


def _text(record: Mapping[str, Any]) -> str:
    return "\n".join(record[name] or "" for name in ("test_case_id", "question", "answer", "reason")).lower()


def _tests(expression: str, cases: list[FilteredCase], run: StoredRun) -> Iterator[Test]:
    terms = list(_TERM.finditer(expression))
    if not terms:
        raise ValueError("no term, expected some as in outcome:failed or recall_any<1")
    for term in terms:
        minus, word, sign, written = term.groups()
        value = re.sub(r"\\(.)", r"\1", written[1:-1]) if written.startswith('"') else written
        test = _test(word, sign, value, cases, run)
        yield _negated(test) if minus else test


def _negated(test: Test) -> Test:
    return lambda case: not test(case)


def _test(word: str | None, sign: str | None, value: str, cases: list[FilteredCase], run: StoredRun) -> Test:
    if word is None or sign is None:
        return lambda case: value.lower() in case.text
    if sign == ":" and word == "id":
        return lambda case: value in case.row.key.partition("::")[2]
    if sign == ":" and word in WORDS:
        return _equals(word, value, cases, run)
    return _compares(word, sign, value, cases)


def _equals(word: str, value: str, cases: list[FilteredCase], run: StoredRun) -> Test:
    if word == "changed" and run.finished_metrics["comparison"] is None:
        raise ValueError(f"run {run.run_id} was compared with no baseline: nothing changed in it; leave changed: out")
    known = {name for case in cases for name in case.values(word)}
    if word == "changed":
        known |= {*CHANGES, "same"}
    choices = (value,) if value in known else tuple(value.split(","))
    for choice in choices:
        if choice not in known and not (word == "outcome" and choice in _OUTCOMES):
            remedy = did_you_mean(choice, known, f"; there are {', '.join(sorted(known)) or 'none'}")
            raise ValueError(f"no case has {word} {choice!r}{remedy}")
    return lambda case: not {*choices}.isdisjoint(case.values(word))


_OUTCOMES = frozenset({"passed", "failed", "error", "skipped", "xfailed"})


def _compares(word: str, sign: str, value: str, cases: list[FilteredCase]) -> Test:
    names = {name for case in cases for name in case.row.scores}
    metric = word if word in names else next((name for name in sorted(names) if name.partition("@")[0] == word), None)
    if metric is None and word != "latency":
        remedy = did_you_mean(word, {*WORDS, *names}, f"; words: {', '.join(WORDS)}, latency, or a metric")
        raise ValueError(f"{word!r} is nothing to filter by{remedy}")
    compare, limit = COMPARISONS.get(sign), _number(value)
    if compare is None or limit is None:
        raise ValueError(f"'{word}{sign}{value}' needs a comparison with a number, as in {word}<0.5")

    def holds(case: FilteredCase) -> bool:
        score = case.row.scores.get(metric) if metric is not None else case.row.latency.get("total_ms")
        return score is not None and compare(score, limit)

    return holds


def _number(written: str) -> float | None:
    try:
        return float(written)
    except ValueError:
        return None
