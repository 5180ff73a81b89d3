"""L5 Answer: the share of a case's own assertions that hold."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_rageval.assertions.assertion_type import CheckedAnswer
from pytest_rageval.assertions.checking import AssertionOutcome, check_assertions
from pytest_rageval.assertions.registry import single_assertions
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.messages import shown_value
from pytest_rageval.llm.price_list import LISTED_PRICES, PriceList
from pytest_rageval.metrics.abstention import abstention
from pytest_rageval.metrics.calls import cost_usd, latency_ms
from pytest_rageval.metrics.registry import Metric, Registry, Scored, is_described, metric
from pytest_rageval.model import EvalCase, Json, NotApplicable, Observation, Score
from pytest_rageval.text import counted, cut

if TYPE_CHECKING:
    from pytest_rageval.cases.loading import CaseFile

NAME = "assertions"
GATE = "assertions >= 1 tag L5_assertion_fail"
"""In effect in runs whose cases have assertions: other runs have neither the metric nor its gate."""
NO_ASSERTIONS = NotApplicable("the case has no assertions")
LONGEST_LINE = 600
"""Characters of what is said about an assertion."""
ABOUT_A_REFUSAL = (
    "the answer declines, and may only quote the word that not-contains forbids; "
    "write {'any': [{'is-refusal': true}, …]} if that is right"
)


def _holding(obs: Observation, _: int, prices: PriceList = LISTED_PRICES) -> str:
    return _holding_of(outcomes_of(obs, prices))


def _holding_of(outcomes: Iterable[AssertionOutcome]) -> str:
    applicable = [outcome for outcome in outcomes if outcome.holds is not None]
    holding = sum(bool(outcome.holds) for outcome in applicable)
    return f"{holding} of {counted(len(applicable), 'assertion holds', 'assertions hold')}"


@metric(layer="L5", better="higher", needs=("answer",), on_by_default=False, terms=_holding)
def assertions(obs: Observation, prices: PriceList = LISTED_PRICES) -> Scored:
    """The assertions of the case (`assert`) that hold / those that are applicable.

    In [0, 1], higher is better. Where a case of the run has assertions, the metric is on and its default gate is 1. The
    detail `broken` says for each broken assertion what was received instead, `not_checked` names those that are not
    applicable. Not applicable to cases without assertions, or where none of them is applicable. Source: assertions of
    promptfoo.

    >>> score("assertions", asserted("It costs 4 euros.", {"icontains": "4 EUROS"}, {"not-contains": "5"}))
    1.0
    >>> score("assertions", asserted("It costs 4 euros.", {"icontains": "4 euros"}, {"word-count": {"max": 3}}))
    0.5
    """
    if not obs.case.assertions:
        return NO_ASSERTIONS
    outcomes = outcomes_of(obs, prices)
    detail: dict[str, Json] = {}
    broken = [outcome for outcome in outcomes if outcome.holds is False]
    unchecked = [outcome for outcome in outcomes if outcome.holds is None]
    if broken:
        detail["broken"] = [cut(outcome.line, LONGEST_LINE) for outcome in broken]
    if unchecked:
        detail["not_checked"] = [cut(outcome.line, LONGEST_LINE) for outcome in unchecked]
    # A refusal often repeats what it cannot tell: "I do not know the price".
    if _forbids_words(broken) and abstention(obs).value:
        detail["note"] = ABOUT_A_REFUSAL
    return _share(obs, outcomes, detail)


def _share(obs: Observation, outcomes: Sequence[AssertionOutcome], detail: dict[str, Json]) -> Scored:
    applicable = [outcome for outcome in outcomes if outcome.holds is not None]
    if not applicable:
        reason = "; ".join(dict.fromkeys(cut(outcome.received, LONGEST_LINE) for outcome in outcomes))
        return NotApplicable(reason, is_unobserved=obs.answer.text is None)
    holding = [outcome for outcome in applicable if outcome.holds]
    return Score(len(holding) / len(applicable), detail)


def _forbids_words(broken: Iterable[AssertionOutcome]) -> bool:
    """Check whether an assertion that forbids a word is among the broken ones."""
    singles = single_assertions(tuple(outcome.assertion for outcome in broken))
    return any(single.is_negated and "contains" in single.type and "json" not in single.type for single in singles)


def broken_assertions(detail: Mapping[str, Json]) -> Iterator[str]:
    """Yield each broken assertion of a score's detail with what was received, and the note on a refusal."""
    yield from map(str, detail.get("broken") or ())
    if detail.get("note"):
        yield f"note: {detail['note']}"


# ── the outcomes of one answer ────────────────────────────────────────────────────────────────────────────────


class _LatestOutcomes(threading.local):
    """The observation that was checked last on this thread, and the outcomes: several metrics ask in succession."""

    checked: tuple[Observation, PriceList, list[AssertionOutcome]] | None = None


_latest = _LatestOutcomes()


def outcomes_of(obs: Observation, prices: PriceList = LISTED_PRICES) -> list[AssertionOutcome]:
    """Return the outcome of each assertion of a case, in their order."""
    latest = _latest.checked
    if latest is None or latest[0] is not obs or latest[1] is not prices:
        latest = (obs, prices, _checked(obs, prices))
        _latest.checked = latest
    return latest[2]


def _checked(obs: Observation, prices: PriceList) -> list[AssertionOutcome]:
    text = obs.answer.text
    types = {single.plain_type for single in single_assertions(obs.case.assertions)}
    declined: bool | None = None
    # Whether the system declined takes a detector: only where an assertion asks.
    if "is-refusal" in types and text is not None:
        declined = abstention(obs).value
    answer = CheckedAnswer(
        text=text or "",
        answer=obs.answer,
        latency_ms=_amount(latency_ms, obs),
        cost_usd=_amount(cost_usd, obs, prices) if "cost" in types else None,
        abstained=declined,
        judgements=obs.judgements,
    )
    return check_assertions(obs.case.assertions, answer, has_text=text is not None)


def _amount(operation: Metric, obs: Observation, *options: object) -> float | NotApplicable:
    """Return what a metric of the operations measures, so that an assertion and a gate never differ."""
    assert operation.function is not None
    amount = operation.function(obs, *options)
    return amount if isinstance(amount, float | NotApplicable) else amount.value


# ── metrics of runs with assertions ───────────────────────────────────────────────────────────────────────────


def assertion_metrics(cases: Iterable[EvalCase]) -> list[str]:
    """Return the metrics that assertions of these cases add to a run: `assertions`, then their own names, sorted."""
    names: set[str] = set()
    has_assertions = False
    for case in cases:
        for assertion in case.assertions:
            has_assertions = True
            if assertion.metric is not None:
                names.add(assertion.metric)
    return [NAME, *sorted(names - {NAME})] if has_assertions else []


def checked_metric_names(file: CaseFile, registry: Registry) -> CaseFile:
    """Return a case file with a problem for each assertion whose metric has the name of another one."""
    problems: list[str] = []
    sound: list[EvalCase] = []
    for case in file.cases:
        names = {assertion.metric for assertion in case.assertions if assertion.metric is not None}
        taken = [name for name in sorted(names - {NAME}) if _is_taken(name, registry)]
        problems += [f"{case.source}:1: case {case.id!r}: {_taken(name)}" for name in taken]
        if not taken:
            sound.append(case)
    return replace(file, cases=sound, problems=(*file.problems, *problems)) if problems else file


def _is_taken(name: str, registry: Registry) -> bool:
    """Return True if another metric has this name, or is called so."""
    return name in registry and not is_described(registry[name]) and not _is_named(registry[name])


def _taken(name: str) -> str:
    return f"assert: the metric {shown_value(name)} of an assertion is one of the metrics already; give it another name"


def with_assertion_metrics(registry: Registry, names: Iterable[str]) -> Registry:
    """Return the registry with `assertions` on by default and gated, and a metric for each other name.

    A name that another metric has is a SettingsError.
    """
    metrics = {each.name: each for each in registry}
    problems = []
    for name in names:
        if name == NAME:
            metrics[name] = replace(assertions, options=metrics[name].options, on_by_default=True, gates=(GATE,))
        elif _is_taken(name, registry):
            problems.append(_taken(name))
        else:
            metrics[name] = named_metric(name)
    if problems:
        raise SettingsError(*problems)
    return Registry(metrics.values())


def named_metric(name: str) -> Metric:
    """Return the metric of the assertions with this name: the share of them that hold."""

    def named(obs: Observation, prices: PriceList) -> list[AssertionOutcome]:
        return [outcome for outcome in outcomes_of(obs, prices) if outcome.assertion.metric == name]

    def share(obs: Observation, prices: PriceList = LISTED_PRICES) -> Scored:
        """The share of the assertions with this `metric` that hold."""
        outcomes = named(obs, prices)
        if not outcomes:
            return NotApplicable(f"no assertion of the case has the metric {name}")
        return _share(obs, outcomes, {})

    def holding(obs: Observation, _: int, prices: PriceList = LISTED_PRICES) -> str:
        return _holding_of(named(obs, prices))

    return Metric(layer="L5", better="higher", needs=("answer",), name=name, function=share, terms=holding)


def _is_named(registered: Metric) -> bool:
    """Check whether a metric comes from the name of an assertion."""
    function = registered.function
    return function is not None and getattr(function, "__qualname__", "").startswith(named_metric.__name__)


def is_of_assertions(registered: Metric) -> bool:
    """Check whether assertions of the cases added or switched on this metric."""
    return _is_named(registered) or (registered.name == NAME and registered.on_by_default)
