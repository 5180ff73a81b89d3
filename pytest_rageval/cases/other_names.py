"""Names that other tools give to the parts of a case: Ragas, DeepEval, promptfoo and the habits of their users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

QUESTION: Final = "question"
ANSWER: Final = "gold.answer"
CONTEXTS: Final = "contexts"
OF_SYSTEM: Final = "of the system"
"""What a system gave: no part of a case, but of a file of answers."""

OTHER_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("input", "user_input", "prompt", "user_query", "user_question", "instruction"), QUESTION),
    **dict.fromkeys(
        ("ground_truth", "ground_truths", "groundtruth", "ground_truth_answer", "expected", "expected_output",
         "expected_answer", "expected_response", "reference_output", "golden_answer", "gold_answer", "ideal"),
        ANSWER,
    ),
    **dict.fromkeys(
        ("reference_contexts", "ground_truth_context", "ground_truth_contexts", "gold_contexts", "context"), CONTEXTS
    ),
    **dict.fromkeys(
        ("actual_output", "response", "output", "generated_answer", "retrieval_context", "retrieved_contexts"),
        OF_SYSTEM,
    ),
}  # fmt: skip
"""What each name is here."""

CONVERT = "`rageval cases convert` reads such files"


def key_hint(name: str) -> str:
    """What another tool's key of a JSON line is here, as a remedy; empty where the name is nobody's."""
    part = OTHER_NAMES.get(name.strip().lower())
    return _hint(part) if part else ""


def column_hint(name: str) -> str:
    """What another tool's column is in a CSV file of cases, as a remedy; empty where the name is nobody's."""
    part = OTHER_NAMES.get(name.strip().lower())
    if name.strip().lower() == "answer":
        return _hint("reference")
    return _hint("reference" if part == ANSWER else part) if part else ""


def _hint(part: str) -> str:
    if part == OF_SYSTEM:
        return (
            "what a system gave stands in a file of answers, apart from the cases; `rageval cases convert` parts them"
        )
    return f"it is {part!r} here; {CONVERT}"
