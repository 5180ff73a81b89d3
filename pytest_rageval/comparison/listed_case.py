"""One case of a list: what its record says of it, and how it differs from the other run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any, NamedTuple

from pytest_rageval.comparison.case_changes import UNCHANGED, AnswerChange
from pytest_rageval.matching.dialects import NO_DOUBT, worst_doubt
from pytest_rageval.model import NOTHING
from pytest_rageval.model.case_fields import CATEGORY, DESCRIPTIVE_FIELDS, descriptions_in
from pytest_rageval.runs.case_place import case_id, place_text
from pytest_rageval.runs.causes import NO_CAUSE
from pytest_rageval.runs.flaky_cases import is_flaky_record
from pytest_rageval.runs.row import IS_BAD

UNCHECKED = {
    "gates": "no gate examined the case",
    "gold": "it passed, and no gate looked at its gold",
    "facts": "no gate looked at its key facts",
    "answer": "no gate compared the answer with its gold answer",
    "abstention": "the wording leaves open if the system abstained",
    "language": "abstentions were detected without training in its language",
}
"""What may not have been checked of a case; the words of the filter `unchecked:`."""
FLAKY = "yes"
STEADY = "no"
"""Words of the filter `flaky:`."""
FAILING = IS_BAD | {"error"}
"""Outcomes of cases that failed or ended in an error."""
_RANKS = {"worse": 0, "error": 1, "failed": 2, "unmeasured": 3, "xfailed": 4}


class ListedCase(NamedTuple):
    """One case of a list, as its record has it; of several trials, the one that stands for it.

    descriptions  the texts of its descriptive fields by name; cases with equal ones share a mapping
    tags          of the case and of its failed gates; failed: these gates as metric and tag
    operations    what asking took, by the names of the metrics of operations; empty if nothing was asked
    doubt         the worst doubt about a match, a word of the filter `doubt:`
    cause         why it fails, a word of the filter `cause:`; `none` if it does not, or the run is an older one
    flaky         `yes` if some of its trials pass and others do not, a word of the filter `flaky:`
    conversation, turn  of a turn, the id and the number from 1; '' for a single case
    change        a word of the filter `changed:`
    drop, fallen  the largest fall of a score since the other run as a share of its scale, negative; and its metric
    level         mean of the scores as 0 to 1, higher better; None without scores
    """

    key: str
    outcome: str
    descriptions: Mapping[str, str]
    error_kind: str | None = None
    trial: int = 0
    tags: Sequence[str] = ()
    failed: Sequence[tuple[str, str]] = ()
    question: str | None = None
    answer: str | None = None
    place: str = ""
    message: str | None = None
    operations: Mapping[str, float] = NOTHING
    doubt: str = NO_DOUBT
    cause: str = NO_CAUSE
    flaky: str = STEADY
    unchecked: Sequence[str] = ()
    conversation: str = ""
    turn: str = ""
    answer_change: AnswerChange = "unknown"
    change: str = UNCHANGED
    drop: float = 0.0
    fallen: str | None = None
    level: float | None = None

    @property
    def category(self) -> str:
        return self.descriptions[CATEGORY]

    @property
    def id(self) -> str:
        """Return the id in the case's key."""
        return case_id(self.key)

    @property
    def file(self) -> str:
        """Return the file in the case's key; '' if it has none."""
        return self.key.partition("::")[0] if "::" in self.key else ""

    @property
    def latency_ms(self) -> float | None:
        return self.operations.get("latency_ms")

    @property
    def is_failing(self) -> bool:
        return self.outcome in FAILING

    @property
    def why(self) -> str:
        """Return the failed gates or the error; '' if the case passed, unless it is flaky."""
        if self.outcome == "passed":
            return self.message or ""
        message = self.message or self.outcome
        return f"{self.error_kind}: {message}" if self.error_kind else message

    @property
    def rank(self) -> int:
        """Return 0 for a case that newly fails, then errors, failing cases, unmeasured ones, known failures, others."""
        return _rank(self.outcome, self.change)

    @property
    def severity(self) -> tuple[int, float, float, str]:
        """Return the sort key: the rank, then the largest falls and the lowest scores."""
        level = 1.0 if self.level is None else self.level
        return self.rank, self.drop, level, self.key


@cache
def _rank(outcome: str, change: str) -> int:
    state = outcome if outcome in FAILING and change != "worse" else change
    return _RANKS.get(state, len(_RANKS))


def listed_case(record: Mapping[str, Any]) -> ListedCase:
    """Return the case of a record, without a comparison."""
    return ListedCase(*record_fields(record))


def record_fields(record: Mapping[str, Any]) -> Sequence[Any]:
    """Return the first fields of a `ListedCase` in their order, as far as a record fills them.

    Values without names: lists of many cases keep them as columns.
    """
    error = record["error"] or NOTHING
    failed = tuple((gate["metric"], gate["tag"] or gate["metric"]) for gate in record["verdict"]["failed_gates"])
    # The tags of failed gates are found like those of the case.
    tags = tuple(dict.fromkeys(chain(record["tags"], (tag for _, tag in failed))))
    message = error.get("message") or record["reason"]
    doubts = record.get("doubt")
    doubt = worst_doubt(doubts) if doubts else NO_DOUBT
    cause = record["cause"]["kind"] if record.get("cause") else NO_CAUSE
    flaky = FLAKY if is_flaky_record(record) else STEADY
    return (
        record["case_key"],
        record["outcome"],
        _shared_descriptions(descriptions_in(record)),
        error.get("kind"),
        record["trial"],
        tags,
        failed,
        record["question"],
        record["answer"],
        place_text(record),
        message,
        record.get("operations") or NOTHING,
        doubt,
        cause,
        flaky,
        tuple(_unchecked(record)),
        record.get("conversation") or "",
        str(record.get("turn") or ""),
    )


def _unchecked(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield what no gate looked at, as words of UNCHECKED."""
    verdict = record["verdict"]
    has_gate = bool(verdict["gates_held"] or verdict["failed_gates"])
    if not has_gate and record["outcome"] != "error" and not record.get("conversational"):
        yield "gates"
    if verdict.get("gold_examined") is False and record["outcome"] == "passed":
        yield "gold"
    if verdict.get("facts_examined") is False:
        yield "facts"
    if verdict.get("answer_compared") is False:
        yield "answer"
    abstention = record["abstention"] or NOTHING
    if abstention.get("undecided"):
        yield "abstention"
    if abstention.get("untrained_language"):
        yield "language"


@lru_cache(maxsize=4096)
def _shared_descriptions(texts: tuple[str | None, ...]) -> Mapping[str, str]:
    """Return the texts of descriptive fields by name: most cases have those of many others."""
    return {field.name: text or field.absent for field, text in zip(DESCRIPTIVE_FIELDS, texts, strict=True)}
