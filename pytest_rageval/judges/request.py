"""What is a judge asked about one answer? Requests built from the case and the answer, where there is any to make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.matching import in_rank_order
from pytest_rageval.model import Answer, EvalCase, Json, JudgeRequest


def requests_for(case: EvalCase, answer: Answer, rubrics: Iterable[str], k: int, trial: int = 0) -> list[JudgeRequest]:
    """One request a rubric, in the order given; a rubric that cannot apply to this answer is left out.

    Left out are all for an answer that is blank or was not recorded; groundedness without any context; abstention where
    the system says itself whether it abstained; and, where it did, groundedness and relevance, and correctness
    unless the case is answerable. The variables are those that the rubric's prompt reads:

    question, answer  str
    contexts          list of {"chunk_id": str or None, "text": str}: the top k chunks, else the references, else the
                      contexts given with the case; texts that are absent or blank are not among them
    references        list of str: the gold answers, any of which is right
    key_facts         list of str
    history           list of {"role": str, "text": str}: earlier turns, oldest first

    An unknown rubric is a SettingsError.
    """
    if answer.text is None or not answer.text.strip():
        return []
    contexts = _contexts(case, answer, k)
    found = []
    for name in rubrics:
        rubric = load_rubric(name)
        if _applies(name, case, answer, has_context=bool(contexts)):
            values = {variable: _VALUES[variable](case, answer) for variable in rubric.variables - {"contexts"}}
            if "contexts" in rubric.variables:
                values["contexts"] = contexts
            found.append(JudgeRequest(name, rubric.prompt_version, values, trial))
    return found


def _applies(rubric: str, case: EvalCase, answer: Answer, *, has_context: bool) -> bool:
    match rubric:
        case "groundedness":
            return has_context and not answer.abstained
        case "relevance":
            return not answer.abstained
        case "correctness":
            return case.answerable or not answer.abstained
        case "abstention":
            return answer.abstained is None
        case _:
            return True


def _contexts(case: EvalCase, answer: Answer, k: int) -> list[dict[str, Json]]:
    chunks = in_rank_order(answer.chunks or ())[:k]
    for passages in (
        [(chunk.chunk_id, chunk.text) for chunk in chunks],
        [(reference.chunk_id, reference.text) for reference in answer.references or ()],
        [(None, text) for text in case.contexts or ()],
    ):
        found = [{"chunk_id": name, "text": text} for name, text in passages if text and text.strip()]
        if found:
            return found
    return []


_VALUES: Mapping[str, Callable[[EvalCase, Answer], Json]] = {
    "question": lambda case, _: case.question,
    "answer": lambda _, answer: answer.text,
    "references": lambda case, _: list(case.gold.answers or ()),
    "key_facts": lambda case, _: list(case.gold.key_facts or ()),
    "history": lambda case, _: [{"role": turn.role, "text": turn.text} for turn in case.history or ()],
}
