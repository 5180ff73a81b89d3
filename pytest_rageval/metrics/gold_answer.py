"""L5 Answer: how much of a gold answer stands in the answer, whatever else the answer says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_rageval.language.gold_search import GoldFit, best_fit
from pytest_rageval.language.words import tokens
from pytest_rageval.metrics.answer import (
    NO_GOLD_ANSWER,
    compared,
    declined,
    gold_answers,
    is_refused,
    shared_tokens,
    split_compounds,
    with_bound_figures,
)
from pytest_rageval.model import NotApplicable, Observation, Score


def _recalled(obs: Observation, _: int) -> str:
    golds = gold_answers(obs, "default")
    if not golds or is_refused(obs):
        return ""
    best = best_recall(obs.answer.text or "", golds)
    return f"{best.shared} of {best.total} tokens of the gold answer"


@compared(needs=("answer", "gold.answer"), missing=declined, terms=_recalled)
def token_recall(obs: Observation) -> float | NotApplicable:
    """Tokens of the gold answer that the answer has too / tokens of the gold answer, for the best of the gold answers.

    Counted with repetitions, in [0, 1], higher is better; tokens are those of `token_f1`. What else the answer says
    costs nothing. A refusal of an answerable question is 0. Not applicable without a gold answer, where no answer is
    recorded, or where the system abstained from an unanswerable question. Source: recall of Adlakha et al. 2024,
    Evaluating Correctness and Faithfulness of Instruction-Following Models for Question Answering.

    All of three tokens stand in the answer:

    >>> score("token_recall", answered("The fast red car is in the yard.", "a fast red car"))
    1.0
    """
    golds = gold_answers(obs, "default")
    if not golds:
        return NO_GOLD_ANSWER
    if is_refused(obs):
        return 0.0
    return best_recall(obs.answer.text or "", golds).value


class TokenRecall(NamedTuple):
    """The tokens that an answer shares with a gold answer, of all tokens of the gold answer."""

    shared: int
    total: int

    @property
    def value(self) -> float:
        # A gold answer without words asks for none.
        return self.shared / self.total if self.total else 1.0


def best_recall(answer: str, golds: Sequence[str]) -> TokenRecall:
    """Return the recall of the gold answer whose tokens an answer has most of."""
    answer_tokens = tokens(answer)
    recalls: list[TokenRecall] = []
    for gold in golds:
        gold_tokens = tokens(gold)
        words: Sequence[str] = answer_tokens
        if not answer.isascii():
            words, gold_tokens = split_compounds(answer_tokens, gold_tokens)
        words, wanted = with_bound_figures(words, gold_tokens)
        recalls.append(TokenRecall(shared_tokens(words, wanted), len(wanted)))
    return max(recalls, key=lambda recall: recall.value)


def gold_fit(obs: Observation) -> GoldFit | None:
    """Return how the best gold answer fits, None without one or for a refusal."""
    golds = gold_answers(obs, "default")
    if not golds or is_refused(obs):
        return None
    return best_fit(obs.answer.text or "", golds, obs.case.question)


def _fitted(obs: Observation, _: int) -> str:
    fit = gold_fit(obs)
    if fit is None:
        return ""
    return fit.sentence or f"`{fit.gold}` is in the answer"


@compared(
    needs=("answer", "gold.answer"),
    missing=declined,
    gates=("gold_in_answer >= 0.50 when answer=short tag L5_wrong_answer",),
    yields_to="reference_match",
    terms=_fitted,
)
def gold_in_answer(obs: Observation) -> Score | NotApplicable:
    """The share of the gold answer's content words that the answer says too, for the best of the gold answers.

    In [0, 1], higher is better. Inflections are folded, and a general noun or all names but a person's last count less.
    A figure with its unit is compared as a quantity, and an identifier (GPT-4o, API_KEY) as a whole: where one is
    missing, the share is 0. The items of a list weigh the same; one of two is below 0.5. Words that the question has
    already count only if the gold answer has no others. What the answer denies ("the carrier is not liable"), offers as
    one of several alternatives, says of something else than the question asks ("adults pay 9, children 4") or opposes
    ("fell by 5 %" to "rose by 5 %") is not in it. For a gold answer that opens with yes or no the polarity decides,
    from the answer's opening or from what it says of the question's predicate, and figures behind it must agree; an
    answer of neither polarity has a share of 0. The detail `missing` says what is not in the answer, `instead`
    which figure the answer has in place of a missing one. A refusal of an answerable question is 0. Not applicable
    without a gold answer, where no answer is recorded, or where the system abstained from an unanswerable question.
    Source: a rule of this project, measured on answers judged by people (EVOUNA).

    >>> score("gold_in_answer", answered("You get a two-year warranty.", "2 years"))
    1.0
    >>> score("gold_in_answer", answered("The warranty is 12 or 24 months.", "24 months"))
    0.0
    """
    if not gold_answers(obs, "default"):
        return NO_GOLD_ANSWER
    fit = gold_fit(obs)
    if fit is None:
        return Score(0.0, {"missing": "the system refused to answer"})
    details = {}
    if fit.sentence:
        details["missing"] = fit.sentence
    # Another figure in place of the gold one explains more than that it is missing.
    if fit.other_figure:
        details["instead"] = fit.other_figure
    return Score(fit.share, details)
