"""Requests to a judge about one answer, built from the case and the answer.

`_applies` decides which rubrics apply. A rubric is also left out if another one gives all its scores, as composite
does for relevance.

The variables of a request are those in the rubric's prompt:

    question, answer  str
    claims            list of {"number": int from 1, "text": str}: the answer as one claim, which
                      `judge_claims` replaces by its claims
    claim             str: the answer, which `judge_claims` replaces by one claim at a time
    contexts          list of {"chunk_id": str or None, "text": str}; see `passages.contexts`
    citations         list of {"number": int from 1, "chunk_id", "source", "text": str or None}: the references
    references        list of str: the gold answers, any of which is right
    reference         str: the first of them, "" without any
    key_facts         list of str
    answerable        bool: True if the case has an answer
    history           list of {"role": str, "text": str}: earlier turns, oldest first; where a case has some, every
                      rubric is given them

    expected_outcome  str: what the person should have at the end of the conversation, whose last turn this is

    criterion         str: what an assertion wants of the answer
    first_answer, second_answer
                      str: the answers of two systems, see `pairwise_requests`

Several rubrics may share one request. Its instructions stand first and are the same in every case, so that servers can
cache them. The material follows, each chunk once; citations refer to chunks by their numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pytest_rageval.judges.rubrics import load_rubric, rubric_names, rubric_of
from pytest_rageval.judges.rubrics.conversation import OF_CONVERSATION, RETENTION, with_history
from pytest_rageval.judges.rubrics.prompt_text import joint_prompt
from pytest_rageval.matching import passages
from pytest_rageval.model import NOTHING, Answer, Dialogue, EvalCase, Json, JudgeRequest, Rubric

VERSION = f"2+{hashlib.sha256(joint_prompt([]).encode()).hexdigest()[:12]}"
"""Part of the cache key: number and hash of the frame of joint prompts. Single and joint requests share no entry."""
_OF_ONE_REQUEST = frozenset({"claim", "claims", "criterion", "first_answer", "second_answer"})
SAID_BY_PERSON = "said by the person"
"""In place of the id of a chunk, for what the person said in an earlier turn."""
OPTIONAL = ("history", "key_facts", "references")
"""Variables that are left out where they are empty. An empty list of contexts or citations says something."""


def requests_for(
    case: EvalCase,
    answer: Answer,
    rubrics: Iterable[str],
    k: int,
    trial: int = 0,
    *,
    wordings: Mapping[str, Rubric] = NOTHING,
    abstained: bool | None = None,
    dialogue: Dialogue | None = None,
) -> list[JudgeRequest]:
    """Build one request for each rubric that applies to this answer, in the order given.

    `wordings` are the rubrics to use by name; shipped ones fill the gaps. `abstained` is the classifier's verdict: the
    response's own statement overrides it, and None means no abstention. Raise SettingsError for an unknown rubric.
    `dialogue`: what was said before. Of small talk and of a blank answer, only the conversation as a whole is judged.
    """
    if answer.text is None:
        return []
    says_nothing = not answer.text.strip() or case.conversational
    contexts = contexts_for(case, answer, k, dialogue)
    has_context = bool(contexts) or answer.chunks == ()
    if answer.abstained is not None:
        abstained = answer.abstained

    applying: list[Rubric] = []
    for name in rubrics:
        if name in OF_CONVERSATION:
            if _applies_to_conversation(name, case, dialogue):
                applying.append(wordings.get(name) or load_rubric(name))
            continue
        if says_nothing:
            continue
        rubric = wordings.get(name) or load_rubric(name)
        if _applies(rubric, case, answer, k, abstained, has_context=has_context):
            applying.append(with_history(rubric) if case.history else rubric)

    requests: list[JudgeRequest] = []
    for rubric in applying:
        # Asked once: a second request would be paid for, and might say otherwise.
        if _is_covered(rubric, applying):
            continue
        variables: dict[str, Json] = {}
        # Sorted, since the order of a set of texts differs from process to process.
        for name in sorted(rubric.variables):
            variables[name] = contexts if name == "contexts" else _VALUES[name](case, answer)
        requests.append(JudgeRequest(rubric.name, rubric.prompt_version, variables, trial, rubric))
    return requests


def contexts_for(case: EvalCase, answer: Answer, k: int, dialogue: Dialogue | None) -> list[Json]:
    """Return what an answer may rest on: passages of this turn, those of earlier ones, and what the person said."""
    contexts: list[Json] = []
    for chunk_id, text in passages.contexts(case, answer, k):
        contexts.append({"chunk_id": chunk_id, "text": text})
    if dialogue is None:
        return contexts
    contexts += _unseen(dialogue.passages, contexts)
    if contexts or answer.chunks == ():
        # Never what the system said: an invented answer would prove itself.
        said = [(SAID_BY_PERSON, turn.text) for turn in dialogue.history if turn.role == "user"]
        contexts += _unseen(said, contexts)
    return contexts


def _unseen(sources: Iterable[tuple[str | None, str]], contexts: Sequence[Mapping[str, Json]]) -> list[Json]:
    """Return sources of earlier turns as contexts, each text once and none that is there already."""
    present = {context["text"] for context in contexts}
    unseen: dict[str, Json] = {}
    for chunk_id, text in sources:
        if text not in present:
            unseen.setdefault(text, {"chunk_id": chunk_id, "text": text})
    return list(unseen.values())


def _is_covered(rubric: Rubric, others: Iterable[Rubric]) -> bool:
    """Return True if another rubric gives all scores of this one, and more."""
    scores = rubric.scores.keys()
    return bool(scores) and any(scores < other.scores.keys() for other in others)


def judged_text(variables: Mapping[str, Json]) -> str:
    """Return the text whose claims a request is about: its claims one per line, its one claim, or the answer."""
    if "claims" in variables:
        return "\n".join(claim["text"] for claim in variables["claims"])
    return str(variables.get("claim", variables.get("answer")) or "")


def reference_texts(variables: Mapping[str, Json]) -> list[str]:
    """Return the gold answers of a request: all, or the first one if its prompt reads only that."""
    if references := variables.get("references"):
        return list(references)
    first = variables.get("reference")
    return [first] if first else []


def _applies(
    rubric: Rubric, case: EvalCase, answer: Answer, k: int, abstained: bool | None, *, has_context: bool
) -> bool:
    """Return True if a rubric applies; a system that found no chunk has an empty context."""
    match rubric.name:
        case "abstention":
            return abstained is None
        case "abstention_quality":
            return True
        case "correctness":
            return case.answerable or not abstained
        case _ if abstained:
            return False
        case "relevance" | "claim_split":
            return True
        case "reference_match":
            return bool(_references(case))
        case "synthesis":
            return has_context and len(passages.documents(case, answer, k)) > 1
        case "conflict_acknowledged":
            return case.gold.recency_conflict_rule == "acknowledge_both"
        case name if name in rubric_names():
            return has_context
    # A project's own applies if the context and the references that it reads are there.
    if "contexts" in rubric.variables and not has_context:
        return False
    reads_references = bool(rubric.variables & {"reference", "references"})
    return not reads_references or bool(_references(case))


def _applies_to_conversation(rubric: str, case: EvalCase, dialogue: Dialogue | None) -> bool:
    """Return True if a conversation is judged as a whole, at its last turn, by this rubric."""
    if not case.is_last or dialogue is None or dialogue.is_gold:
        return False
    if rubric == RETENTION:
        return any(turn.role == "user" for turn in dialogue.history)
    return case.expected_outcome is not None


def _references(case: EvalCase) -> list[str]:
    return [reference for reference in case.gold.answers or () if reference.strip()]


_VALUES: Mapping[str, Callable[[EvalCase, Answer], Json]] = {
    "question": lambda case, _: case.question,
    "answer": lambda _, answer: answer.text,
    "claim": lambda _, answer: answer.text,
    "claims": lambda _, answer: [{"number": 1, "text": answer.text}],
    "citations": lambda _, answer: [citation._asdict() for citation in passages.citations(answer)],
    "references": lambda case, _: _references(case),
    "reference": lambda case, _: next(iter(_references(case)), ""),
    "key_facts": lambda case, _: list(case.gold.key_facts or ()),
    "answerable": lambda case, _: case.answerable,
    "expected_outcome": lambda case, _: case.expected_outcome or "",
    "history": lambda case, _: [{"role": turn.role, "text": turn.text} for turn in case.history or ()],
}


# ── one request for several rubrics ───────────────────────────────────────────────────────────────────────────


def can_join(rubric: Rubric) -> bool:
    """Return True if the rubric's prompt was made of its parts, and its material is the same for all rubrics.

    Rubrics on claims or a criterion, and those that compare two answers, are left out: each of their requests has
    material of its own.
    """
    return bool(rubric.material) and rubric.variables.isdisjoint(_OF_ONE_REQUEST)


def joint_request(requests: Sequence[JudgeRequest]) -> JudgeRequest:
    """Return the request for all rubrics of these requests about one answer, which share a trial."""
    variables: dict[str, Json] = {}
    for request in requests:
        variables |= request.variables
    left_out = frozenset(name for name in OPTIONAL if not variables.get(name))
    rubrics = [rubric_of(request) for request in requests]
    versions = tuple((rubric.name, rubric.prompt_version) for rubric in rubrics)
    joint = _JOINT.get((versions, left_out))
    if joint is None:
        joint = _joint(rubrics, left_out)
        _JOINT[versions, left_out] = joint
    return JudgeRequest(joint.name, joint.prompt_version, _by_number(variables), requests[0].trial, joint)


_JOINT: dict[tuple[tuple[tuple[str, str], ...], frozenset[str]], Rubric] = {}
"""By names and versions, which stand for the content of rubrics: few sets of rubrics occur in a run."""


def _joint(rubrics: Sequence[Rubric], left_out: frozenset[str]) -> Rubric:
    """Return the rubric that asks for the replies of all, each as an object of its own."""
    schema: dict[str, Json] = {
        "type": "object",
        "additionalProperties": False,
        "required": [rubric.name for rubric in rubrics],
        "properties": {rubric.name: rubric.schema for rubric in rubrics},
    }
    return Rubric(
        name="answer",
        version=VERSION,
        prompt_version=",".join(rubric.prompt_version for rubric in rubrics),
        scale=(0.0, 1.0),
        scores={},
        prompt=joint_prompt(rubrics, left_out),
        schema=schema,
    )


def _by_number(variables: Mapping[str, Json]) -> dict[str, Json]:
    """Add numbers to the contexts, and replace the texts of citations by them."""
    contexts = variables.get("contexts") or []
    numbered = [{"number": number, **context} for number, context in enumerate(contexts, start=1)]
    # Reversed, so that of equal texts the first one gives the number.
    number_of = {context["text"]: context["number"] for context in reversed(numbered)}

    def with_number(citation: Mapping[str, Any]) -> dict[str, Any]:
        replaced = dict(citation)
        number = number_of.get(citation["text"])
        if number is not None:
            del replaced["text"]
            replaced["context"] = number
        return replaced

    material = dict(variables)
    if "contexts" in variables:
        material["contexts"] = numbered
    if "citations" in variables:
        material["citations"] = [with_number(citation) for citation in variables["citations"]]
    return material
