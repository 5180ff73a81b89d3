"""Tests of promptfoo: a JSON list for its `tests: file://tests.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pytest_rageval.cases.exchange.exchange import KEPT, Answers, ToolFiles, kept_parts, unplaced
from pytest_rageval.model import EvalCase, Json

FEWEST = 1e-6
"""The threshold of a set of checks of which one is enough."""


def write_promptfoo(cases: Sequence[EvalCase], answers: Answers) -> ToolFiles:
    """tests.json: the question as variable `question`, right answers and key facts as checks."""
    rows = [_test(case) for case in cases]
    notes = unplaced("promptfoo", "answers of a system", list(answers)) if answers else ()
    return ToolFiles({"tests.json": [json.dumps(rows, ensure_ascii=False, indent=1)]}, tuple(notes))


def _test(case: EvalCase) -> dict[str, Json]:
    gold = case.gold
    variables: dict[str, Json] = {"question": case.question}
    checks: list[Json] = [{"type": "factuality", "value": text} for text in gold.answers or ()]
    if len(checks) > 1:
        checks = [{"type": "assert-set", "threshold": FEWEST, "assert": checks}]
    checks += [{"type": "icontains", "value": fact} for fact in gold.key_facts or ()]
    native: dict[str, Json] = {"question": case.question}
    if gold.answers:
        native["expected_answers"] = [text.strip() for text in gold.answers]
    if gold.key_facts:
        native["expected_key_facts"] = [fact.strip() for fact in gold.key_facts]
    if case.contexts:
        # One text: promptfoo makes a test of each member of a list.
        variables["context"] = "\n\n".join(case.contexts)
        native["contexts"] = [variables["context"]]
    kept = {"id": case.id, **kept_parts(case, native)}
    test: dict[str, Json] = {"description": case.id, "vars": variables, "metadata": {KEPT: kept}}
    return {**test, "assert": checks} if checks else test
