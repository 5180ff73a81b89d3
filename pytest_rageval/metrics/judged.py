"""L5 Answer by a judge: scores that no formula can give, on the scale of each metric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from pytest_rageval.errors import SettingsError
from pytest_rageval.matching.passages import contexts, documents
from pytest_rageval.metrics.abstention import ABSTAINED, NO_ANSWER, abstention
from pytest_rageval.metrics.answer import NO_GOLD_ANSWER
from pytest_rageval.metrics.registry import Metric, Registry, Scored, is_described, metric
from pytest_rageval.model import Judgement, NotApplicable, Observation, Rubric, Score
from pytest_rageval.text import cut, printable

NOT_JUDGED = NotApplicable("no judge scored this")
BLANK = NotApplicable("the answer is blank")
NO_CONTEXT = NotApplicable("there is no context to judge by")
NO_CLAIM = NotApplicable("the answer makes no claim")
NO_SOURCES = NotApplicable("the system reports neither references nor retrieved chunks")

WEIGHTS = {"faithfulness": 30, "citation_accuracy": 20, "abstention_quality": 20, "synthesis": 15, "relevance": 15}
"""Per cent of `composite`."""

WITHOUT_REFERENCE = "the context alone: the case has no gold answer and no key facts"
_LONGEST_REASON = 200
_JudgeScore = float | Score | NotApplicable


def judges(rubric: str, *gates: str, gold: bool = False, scale: tuple[float, float] = (0, 1)) -> Metric:
    """Declare the metric of a rubric; those of the default judge's scale, 0 to 5, are on by default."""
    needs = ("answer", *(["gold.answer"] if gold else []), f"judge:{rubric}")
    return metric(layer="L5", better="higher", scale=scale, needs=needs, gates=gates, on_by_default=scale == (0, 5))


@judges("groundedness", "groundedness >= 3.5 tag L5_grounding_fail", scale=(0, 5))
def groundedness(obs: Observation) -> _JudgeScore:
    """Judged: are all claims of the answer supported by the context that it was given?

    In 0 to 5, higher is better; 5 needs citations for all major claims. Where the system reports an empty list of
    chunks, nothing supports the answer. Not applicable where no answer is recorded, the system abstained, no context is
    known, or no judge scored it. Source: the rubric `groundedness`.

    A judge that scores from 0 to 1 is brought to the metric's scale: 0.7 · 5.

    >>> score("groundedness", judged("groundedness", 0.7, (0, 1)))
    3.5
    """
    return judged_score(obs, "groundedness", (0, 5))


@judges("correctness", "correctness >= 3.5 tag L5_wrong_answer", scale=(0, 5))
def correctness(obs: Observation) -> _JudgeScore:
    """Judged: does the answer address the question correctly and completely, given the context?

    In 0 to 5, higher is better. Where the case has neither gold answer nor key facts, the detail `judged_by` says that
    it was judged without a reference. Not applicable where no answer is recorded, the system abstained from an
    unanswerable case, or no judge scored it. Source: the rubric `correctness`.

    >>> score("correctness", judged("correctness", 4, (0, 5)))
    4.0
    """
    scored = judged_score(obs, "correctness", (0, 5), even_if_abstained=obs.case.answerable, from_context=False)
    has_reference = obs.gold.key_facts or any(gold.strip() for gold in obs.gold.answers or ())
    if has_reference or isinstance(scored, NotApplicable):
        return scored
    value, detail = (scored.value, scored.detail) if isinstance(scored, Score) else (scored, {})
    return Score(value, {**detail, "judged_by": WITHOUT_REFERENCE})


@judges("relevance", "relevance >= 0.70 tag L5_relevance_fail")
def relevance(obs: Observation) -> _JudgeScore:
    """Judged: does the answer address what was asked?

    In 0 to 1, higher is better. Not applicable where no answer is recorded, the system abstained, or no judge scored
    it. Source: the rubric `relevance`, or `composite`.

    >>> score("relevance", judged("relevance", 0.8, (0, 1), abstained=True))
    NotApplicable(reason='the system abstained')
    """
    return judged_score(obs, "relevance", from_context=False)


@judges("faithfulness", "faithfulness >= 0.70 tag L5_faithfulness_fail")
def faithfulness(obs: Observation) -> _JudgeScore:
    """Judged: how much of what the answer claims follows from the context, whether it is cited or not?

    In 0 to 1, higher is better. Not applicable where no answer is recorded, the system abstained, there is no context,
    or no judge scored it. Source: the rubric `faithfulness`, or `composite`; after faithfulness of RAGAS (Es et al.
    2023).

    >>> score("faithfulness", judged("faithfulness", 0.75, (0, 1)))
    0.75
    """
    return judged_score(obs, "faithfulness")


@judges("citation_accuracy")
def citation_accuracy(obs: Observation) -> _JudgeScore:
    """Judged: do the citations point to passages that say what they are cited for, and is every claim cited?

    In 0 to 1, higher is better. Not applicable where no answer is recorded, the system abstained, there is no context,
    or no judge scored it. Source: the rubric `citation_accuracy`, or `composite`.

    >>> score("citation_accuracy", judged("citation_accuracy", 0.5, (0, 1)))
    0.5
    """
    return judged_score(obs, "citation_accuracy")


@judges("abstention_quality")
def abstention_quality(obs: Observation) -> _JudgeScore:
    """Judged: did the system rightly answer, or rightly decline, and say so in a way that serves the reader?

    In 0 to 1, higher is better. Not applicable where no answer is recorded, the answer is blank, or no judge scored it.
    Source: the rubric `abstention_quality`, or `composite`.

    It applies to abstentions as well:

    >>> score("abstention_quality", judged("abstention_quality", 1, (0, 1), abstained=True))
    1.0
    """
    return judged_score(obs, "abstention_quality", even_if_abstained=True, from_context=False)


@judges("synthesis")
def synthesis(obs: Observation) -> _JudgeScore:
    """Judged: does the answer bring what several sources say together into one? 1 for an answer from a single source.

    In 0 to 1, higher is better. A single source: fewer than two distinct documents among the references, or, if nothing
    is cited, among the chunks of the context; the detail `decided_by` is `rule` then. Not applicable where no answer is
    recorded, the system abstained, it reports neither references nor chunks, or no judge scored it. Source: the rubric
    `synthesis`, or `composite`.

    >>> score("synthesis", judged("synthesis", 0.5, (0, 1), sources="a b"))
    0.5
    >>> score("synthesis", judged("synthesis", 0.5, (0, 1), sources="a"))
    1.0
    """
    if obs.answer.text is None:
        return NO_ANSWER
    if abstention(obs).value:
        return ABSTAINED
    if obs.answer.references is None and obs.answer.chunks is None and obs.case.contexts is None:
        return NO_SOURCES
    if len(documents(obs.case, obs.answer, obs.k)) < 2:
        return Score(1.0, {"decided_by": "rule"})
    return judged_score(obs, "synthesis")


@judges("composite")
def composite(obs: Observation) -> Score | NotApplicable:
    """Judged, five dimensions in one call: the weighted mean of what they come to.

    In 0 to 1, higher is better; it is .30 faithfulness + .20 citation_accuracy + .20 abstention_quality + .15 synthesis
    + .15 relevance, and the detail has the parts. Not applicable where one of the parts is not, such as where the
    system abstained. Source: the rubric `composite`.

    .30 · 1 + .20 · 0.5 + .20 · 1 + .15 · 1 + .15 · 1, the synthesis being 1 by rule:

    >>> parts = {"faithfulness": 1, "citation_accuracy": 0.5, "abstention_quality": 1, "synthesis": 0, "relevance": 1}
    >>> score("composite", judged("composite", parts, (0, 1)))
    0.9
    """
    parts: dict[str, float] = {}
    for part in (faithfulness, citation_accuracy, abstention_quality, synthesis, relevance):
        assert part.function is not None  # it is one of this package
        scored = part.function(obs)
        if isinstance(scored, NotApplicable):
            if scored in (NO_ANSWER, ABSTAINED):
                # These say why nothing of the answer is scored: no part need be named.
                return scored
            return NotApplicable(f"{part.name}: {scored.reason}")
        parts[part.name] = scored.value if isinstance(scored, Score) else scored
    # In per cent, so that five parts of 1 are exactly 1.
    return Score(math.fsum(WEIGHTS[name] * value for name, value in parts.items()) / 100, parts)


@judges("reference_match", "reference_match >= 0.70 tag L5_reference_fail", gold=True)
def reference_match(obs: Observation) -> _JudgeScore:
    """Judged: does the answer say the same as a gold answer, in whatever words?

    In 0 to 1, higher is better; the nearest gold answer counts. Where a model judged it, the default gate of `token_f1`
    stands back. Not applicable without a gold answer, where no answer is recorded, the system abstained, or no judge
    scored it. Source: the rubric `reference_match`.

    >>> score("reference_match", judged("reference_match", 0.75, (0, 1), gold="42"))
    0.75
    >>> score("reference_match", judged("reference_match", 0.75, (0, 1)))
    NotApplicable(reason='no gold answer is labelled')
    """
    if not any(gold.strip() for gold in obs.gold.answers or ()):
        return NO_GOLD_ANSWER if obs.answer.text is not None else NO_ANSWER
    return judged_score(obs, "reference_match", from_context=False)


@judges("claim_support")
def claim_support(obs: Observation) -> _JudgeScore:
    """Judged, claim by claim: claims of the answer that the context supports / claims.

    In 0 to 1, higher is better. A judge with the rubric `claim_split` takes the answer apart and judges each claim by
    itself, 50 at most; any other judges in one go. Not applicable where no answer is recorded, the system abstained,
    there is no context, the answer makes no claim, or no judge scored it. Source: the rubrics `claim_split` and
    `claim_support`; after FActScore (Min et al. 2023).

    Two of three claims are supported:

    >>> score("claim_support", judged("claim_support", 2 / 3, (0, 1)))
    0.6666666666666666
    """
    return judged_score(obs, "claim_support", unscored=NO_CLAIM)


def judged_score(
    obs: Observation,
    name: str,
    scale: tuple[float, float] = (0.0, 1.0),
    *,
    even_if_abstained: bool = False,
    from_context: bool = True,
    unscored: NotApplicable | None = None,
) -> _JudgeScore:
    """Return the judge's score on the metric's scale, with its spread if the judge was asked repeatedly."""
    if obs.answer.text is None:
        return NO_ANSWER
    # A refusal claims nothing: full marks for it would raise the mean of a system that refuses much.
    if not even_if_abstained and abstention(obs).value:
        return ABSTAINED
    judgement = obs.judged(name)
    if judgement is None:
        return _why_not(obs, obs.answer.text, name, unscored, from_context=from_context)
    (low, high) = scale
    (from_low, from_high) = judgement.scale
    factor = (high - low) / (from_high - from_low)
    value = low + (judgement.scores[name] - from_low) * factor
    spread = judgement.extra.get("spread")
    if isinstance(spread, Mapping) and isinstance(score_spread := spread.get(name), int | float):
        return Score(value, {"spread": score_spread * factor})
    return value


def _why_not(
    obs: Observation, text: str, name: str, unscored: NotApplicable | None, *, from_context: bool
) -> NotApplicable:
    """Return why no judgement holds a score for this."""
    if not text.strip():
        return BLANK
    judgement = obs.judgements.get(name)
    if judgement is not None:
        # A heuristic's reasons are its own words; a model's may quote its input.
        reason = cut(judgement.reasoning, _LONGEST_REASON) if judgement.heuristic else ""
        if reason:
            return NotApplicable(printable(reason))
        return unscored or NotApplicable(_by(judgement, "gave no score"))
    other = next(iter(obs.judgements.values()), None)
    if other is None:
        return NOT_JUDGED
    if from_context and not contexts(obs.case, obs.answer, obs.k):
        return NO_CONTEXT
    return NotApplicable(_by(other, "did not score this"))


def _by(judgement: Judgement, what: str) -> str:
    return printable(" ".join(f"the judge {cut(judgement.model, _LONGEST_REASON)} {what}".split()))


REFERENCES = frozenset({"reference", "references"})


def rubric_metric(rubric: Rubric) -> Metric:
    """Return the metric of a rubric: its score, on its scale, with a default gate at 70 % of it."""
    reads_contexts = "contexts" in rubric.variables

    def score(obs: Observation) -> Scored:
        if rubric.variables & REFERENCES and not any(gold.strip() for gold in obs.gold.answers or ()):
            return NO_GOLD_ANSWER
        return judged_score(obs, rubric.name, rubric.scale, from_context=reads_contexts)

    low, high = rubric.scale
    score.__doc__ = (
        f"Judged: the rubric `{rubric.name}` of this project.\n\n"
        f"In {low:g} to {high:g}, higher is better. Not applicable where no answer is recorded, the system abstained, "
        "what the rubric's prompt reads is not there, or no judge scored it."
    )
    return Metric(
        name=rubric.name,
        function=score,
        layer="L5",
        better="higher",
        scale=rubric.scale,
        needs=("answer", f"judge:{rubric.name}"),
        gates=(f"{rubric.name} >= 70% tag L5_{rubric.name}_fail",),
        on_by_default=False,
    )


def with_rubric_metrics(registry: Registry, rubrics: Iterable[Rubric], folder: str | None) -> Registry:
    """Return the registry with a metric for each of these rubrics that no metric reads yet.

    A rubric with the name of a metric of another kind is a SettingsError. One that a stored run only described becomes
    the metric itself.
    """
    metrics = {metric.name: metric for metric in registry}
    read = set(_READ_WITHOUT_A_METRIC)
    for known in metrics.values():
        read.update(known.rubrics)
    problems = []
    for rubric in rubrics:
        if rubric.name in read:
            continue
        if rubric.name in registry and not is_described(registry[rubric.name]):
            problems.append(
                f"{folder}/{rubric.name}: {registry[rubric.name].name!r} is a metric already, which no judge scores; "
                "rename the file"
            )
        metrics[rubric.name] = rubric_metric(rubric)
    if problems:
        raise SettingsError(*problems)
    return Registry(metrics.values())


_READ_WITHOUT_A_METRIC = frozenset({"claim_split"})
