"""The cause of a failing case: the earliest stage of the pipeline that explains it, read from its record alone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from pytest_rageval.gates.gate import HOLDS
from pytest_rageval.matching.lost_snippets import has_lost_snippet
from pytest_rageval.model import BLOCKED
from pytest_rageval.text import cut

TITLES: Mapping[str, str] = {
    "system_error": "the system failed",
    "blocked": "not asked, since an earlier turn broke the conversation",
    "judge_error": "the judge failed",
    "evaluation_error": "could not be evaluated",
    "empty_answer": "the answer is empty, and the system does not say that it abstains",
    "answered_unanswerable": "answered although no answer exists",
    "tool_forbidden": "a forbidden tool was called",
    "tool_missed": "not the expected tool calls",
    "too_many_tool_calls": "more tool calls than the case allows",
    "reference_not_resolved": "passes only as its rewrite",
    "nothing_retrieved": "nothing was retrieved",
    "no_paths": "no retrieved chunk names its path",
    "gold_elsewhere": "the text of the gold was retrieved under another name",
    "snippet_not_retrieved": "the gold's place was retrieved, but without its snippet",
    "gold_not_retrieved": "the gold was not retrieved",
    "gold_partly_retrieved": "only a part of the gold was retrieved",
    "gold_ranked_low": "the gold was retrieved, but ranked too low",
    "refused": "refused although an answer exists",
    "wrong_quantity": "another figure than the gold answer",
    "not_in_answer": "the gold was retrieved, but is not in the answer",
    "wrong_answer": "not what the gold answer says",
    "not_grounded": "not supported by the retrieved chunks",
    "broken_assertion": "an assertion of the case is broken",
    "own_test": "an assertion of the project's own test",
    "unmeasured": "not measured, and the baseline has it",
    "gate": "fails",
}
"""Kinds of causes with their titles, in the order of the stages; the words of the filter `cause:`."""
GOLD_ELSEWHERE = "gold_elsewhere"
"""The kind of cause that is no failure of retrieval: a folder was renamed, or chunks have new ids."""
ELSEWHERE = "elsewhere"
"""The member of a record that says how the place of a missed gold differs from that of a chunk with its text."""
GATE_CAUSES = "gate_causes"
"""The member of a record with the causes of single gates, by metric, as far as they differ from that of the case."""
NO_CAUSE = "none"
"""The word of the filter for a case that does not fail."""
_ORDER = {kind: place for place, kind in enumerate(TITLES)}
UNMEASURED = "unmeasured: "
"""The beginning of the reason of a case that fails since this run could not measure what the baseline did."""
_JUDGE_ERROR = "judge"
_OF_EVALUATION = frozenset({"metric", "hook", "record", "setup", "crash"})
"""Kinds of error that are neither of the system nor of its judge."""
_LONGEST_DETAIL = 200
_IDENTIFIER = re.compile(r"\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4,12})*|[0-9a-f]{9,64}|[0-9]{5,20})\b", re.IGNORECASE)
"""What differs between equal errors: request ids, times, ports."""


class Cause(NamedTuple):
    """Why a case failed: a kind of TITLES, and what tells causes of one kind apart, such as the error's message."""

    kind: str
    detail: str = ""

    @property
    def text(self) -> str:
        """Return the title with the detail: `the system failed: status 400: unknown parameter top_k`."""
        title = TITLES[self.kind]
        if not self.detail:
            return title
        separator = " " if self.kind == "gate" else ": "
        return f"{title}{separator}{self.detail}"


class CauseOfCases(NamedTuple):
    """A cause and the keys of the cases that it made fail, sorted."""

    cause: Cause
    cases: Sequence[str]


def cause_of(record: Mapping[str, Any]) -> Cause | None:
    """Return the cause of a failing case, known failures included, from its record; None for any other case."""
    error = record["error"]
    if error is not None:
        return _cause_of_error(error)
    if record["outcome"] not in ("failed", "xfailed", "error"):
        return None
    failed = record["verdict"]["failed_gates"]
    if not failed:
        return _cause_without_gate(record)
    layers = _layers_of(failed, record["layers"])
    is_answer_bad = not layers.isdisjoint(("L2", "L5", "abstention"))
    # A search that found nothing explains an empty answer; a system that found something has lost its answer.
    if not layers.isdisjoint(("L5", "abstention")) and _is_empty(record) and not _retrieved_nothing(record):
        return Cause("empty_answer")
    if "abstention" in layers and not record["answerable"]:
        return Cause("empty_answer") if _is_empty(record) else Cause("answered_unanswerable")
    in_tools = _cause_in_tools(failed)
    if in_tools is not None:
        return in_tools
    if _passes_alone(record, failed):
        return Cause("reference_not_resolved")
    # Whatever gate fails then, nothing could be answered from: retrieval is the earlier stage.
    if is_answer_bad and _retrieved_nothing(record):
        return Cause("nothing_retrieved")
    if "L2" in layers or (is_answer_bad and _missed_gold(record)):
        return _cause_in_retrieval(record, failed)
    return _cause_behind_retrieval(record, failed, layers)


def passed_alone(thresholds: Mapping[str, str], scores: Mapping[str, float]) -> dict[str, float]:
    """Return those scores of a rewrite that reach the thresholds, as in `>= 1`, of gates that fail in conversation."""
    passed: dict[str, float] = {}
    for metric, threshold in thresholds.items():
        sign, _, limit = threshold.partition(" ")
        if metric not in scores or limit.endswith("%"):
            continue  # a limit in percent depends on the scale, which no record has
        if HOLDS[sign](scores[metric], float(limit)):
            passed[metric] = scores[metric]
    return passed


def causes_of_gates(record: Mapping[str, Any]) -> dict[str, Cause]:
    """Return the cause of each failed gate by itself, by the name of its metric without the cut-off.

    If a known failure fails a new gate, an earlier stage that failed before as well does not explain it.
    """
    causes: dict[str, Cause] = {}
    for gate in record["verdict"]["failed_gates"]:
        layers = _layers_of([gate], record["layers"])
        if not layers.isdisjoint(("L5", "abstention")) and _is_empty(record):
            cause = Cause("empty_answer")
        elif "abstention" in layers and not record["answerable"]:
            cause = Cause("answered_unanswerable")
        elif _passes_alone(record, [gate]):
            cause = Cause("reference_not_resolved")
        elif "L2" in layers and _retrieved_nothing(record):
            cause = Cause("nothing_retrieved")
        elif "L2" in layers:
            cause = _cause_in_retrieval(record, [gate])
        else:
            cause = _cause_behind_retrieval(record, [gate], layers)
        causes[gate["metric"].partition("@")[0]] = cause
    return causes


def earliest(causes: Iterable[Cause]) -> Cause | None:
    """Return the cause of the earliest stage; None without any."""
    return min(causes, key=lambda cause: (_ORDER[cause.kind], cause.detail), default=None)


def with_cause(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the causes that follow from its other members, in place of those that it has."""
    cause = cause_of(record)
    content = {**record, "cause": cause._asdict() if cause is not None else None}
    content.pop(GATE_CAUSES, None)
    if cause is None:
        return content
    others = {name: each._asdict() for name, each in causes_of_gates(record).items() if each != cause}
    if others:  # of few cases: it need not stand in each record
        content[GATE_CAUSES] = others
    return content


def recorded_causes(record: Mapping[str, Any]) -> dict[str, Cause]:
    """Return the cause of each failed gate by itself, by the name of its metric without the cut-off, as recorded."""
    if not record.get("cause"):
        return {}
    whole = record["cause"]
    own = record.get(GATE_CAUSES, {})
    names = [gate["metric"].partition("@")[0] for gate in record["verdict"]["failed_gates"]]
    return {name: Cause(**own.get(name, whole)) for name in names}


def causes_of_cases(causes: Iterable[tuple[str, Cause]]) -> list[CauseOfCases]:
    """Return the causes of many cases, given as (case key, cause): the most frequent first, equal ones by stage."""
    cases: defaultdict[Cause, list[str]] = defaultdict(list)
    for key, cause in causes:
        cases[cause].append(key)
    grouped = [CauseOfCases(cause, sorted(keys)) for cause, keys in cases.items()]
    return sorted(grouped, key=lambda group: (-len(group.cases), _ORDER[group.cause.kind], group.cause.detail))


def causes_content(causes: Iterable[tuple[str, Cause]]) -> list[dict[str, Any]]:
    """Return the causes of many cases for metrics.json, each with its text and the keys of its cases."""
    grouped = causes_of_cases(causes)
    return [{**cause._asdict(), "text": cause.text, "cases": keys} for cause, keys in grouped]


def _cause_of_error(error: Mapping[str, Any]) -> Cause:
    kind = error["kind"]
    message = error["message"] or ""
    lines = (line.strip() for line in message.splitlines())
    first_line = next(filter(None, lines), "")
    # Equal errors of many cases are one cause: ids and times in them would make each its own.
    detail = cut(_IDENTIFIER.sub("…", first_line), _LONGEST_DETAIL) or kind
    if kind == BLOCKED:
        return Cause("blocked", f"turn {error['turn']}" if error.get("turn") else "")
    if kind.startswith(_JUDGE_ERROR):
        return Cause("judge_error", detail)
    if kind in _OF_EVALUATION:
        return Cause("evaluation_error", detail)
    return Cause("system_error", detail)


def _cause_without_gate(record: Mapping[str, Any]) -> Cause:
    """Return the cause of a case that failed though all of its gates passed, or none examined it."""
    verdict = record["verdict"]
    # A metric that no gate could examine fails no case by itself if another gate examined it.
    is_unmeasured = not verdict.get("gold_examined") or UNMEASURED in (record["reason"] or "")
    if verdict["unexamined"] and is_unmeasured:
        return Cause("unmeasured", ", ".join(verdict["unexamined"]))
    return Cause("own_test")


def _layers_of(failed: Sequence[Mapping[str, Any]], scored: Mapping[str, Mapping[str, float]]) -> set[str]:
    metrics = {gate["metric"] for gate in failed}
    return {layer for layer, scores in scored.items() if not metrics.isdisjoint(scores)}


def _cause_in_tools(failed: Sequence[Mapping[str, Any]]) -> Cause | None:
    """Return the cause in the tool calls, which come before retrieval: a search that was never made finds nothing."""
    metrics = {gate["metric"] for gate in failed}
    for metric, kind in _CAUSES_IN_TOOLS.items():
        if metric in metrics:
            return Cause(kind)
    return None


_CAUSES_IN_TOOLS = {
    "forbidden_tool_called": "tool_forbidden",
    "tools_as_expected": "tool_missed",
    "tool_calls_over_limit": "too_many_tool_calls",
}


def _passes_alone(record: Mapping[str, Any], failed: Sequence[Mapping[str, Any]]) -> bool:
    """Check whether a follow-up that was asked as its rewrite, too, passes all of these gates as that."""
    rewrite = record.get("rewrite")
    if not rewrite or rewrite["error"] is not None:
        return False
    thresholds = {gate["metric"]: gate["threshold"] for gate in failed}
    return len(passed_alone(thresholds, rewrite["scores"])) == len(thresholds)


def _retrieved_nothing(record: Mapping[str, Any]) -> bool:
    return "chunks" in record["reported"] and not record["retrieved_chunks"]


def _missed_gold(record: Mapping[str, Any]) -> bool:
    """Check whether a gold place exists and no retrieved chunk matches any."""
    if record["gold"] in (None, "none") or "chunks" not in record["reported"]:
        return False
    return not _has_gold_chunk(record)


def _has_gold_chunk(record: Mapping[str, Any]) -> bool:
    """Check whether a retrieved chunk matches a gold."""
    return any(chunk["matches"] for chunk in record["retrieved_chunks"] or ())


def _cause_behind_retrieval(record: Mapping[str, Any], failed: Sequence[Mapping[str, Any]], layers: Set[str]) -> Cause:
    if "abstention" in layers:
        return Cause("refused")
    if "L5" in layers:
        return _cause_in_answer(record, failed)
    return Cause("gate", ", ".join(gate["metric"] for gate in failed))


def _is_empty(record: Mapping[str, Any]) -> bool:
    """Check whether the answer is blank though the system says that it does not abstain."""
    answer = record["answer"]
    abstention = record.get("abstention") or {}
    return answer is not None and not answer.strip() and abstention.get("abstained") is False


def _cause_in_retrieval(record: Mapping[str, Any], failed: Sequence[Mapping[str, Any]]) -> Cause:
    if record.get(ELSEWHERE):
        return Cause(GOLD_ELSEWHERE, record[ELSEWHERE])
    if any(has_lost_snippet(flag) for flag in record.get("flags", ())):
        return Cause("snippet_not_retrieved")
    if _has_gold_chunk(record):
        return _cause_in_ranking(record, failed)
    chunks = record["retrieved_chunks"] or ()
    if record["gold"] == "anchors" and chunks and not any(chunk["rel_path"] for chunk in chunks):
        return Cause("no_paths")
    return Cause("gold_not_retrieved")


def _cause_in_ranking(record: Mapping[str, Any], failed: Sequence[Mapping[str, Any]]) -> Cause:
    """Return the cause in the retrieval of a case of which some gold was retrieved."""
    metrics = {gate["metric"].partition("@")[0] for gate in failed}
    recalls = [score for name, score in record["scores"].items() if name.partition("@")[0] in _RECALLS]
    if metrics & _RANKED and (not recalls or min(recalls) == 1):
        return Cause("gold_ranked_low")
    return Cause("gold_partly_retrieved")


_RECALLS = frozenset({"context_recall", "recall_all"})
"""Metrics that are 1 if all golds were retrieved."""
_RANKED = frozenset({"mrr", "ndcg", "map", "r_precision"})
"""Metrics that fall if golds that were retrieved stand far down."""


def _cause_in_answer(record: Mapping[str, Any], failed: Sequence[Mapping[str, Any]]) -> Cause:
    metrics = {gate["metric"].partition("@")[0] for gate in failed}
    # Only if these alone fail: an answer that is wrong as well is explained better by that.
    if metrics <= {"groundedness", "faithfulness"}:
        return Cause("not_grounded")
    if metrics == {"assertions"}:
        return Cause("broken_assertion")
    details = record["score_details"].get("gold_in_answer") or {}
    if details.get("instead") is not None:
        return Cause("wrong_quantity")
    return Cause("not_in_answer" if _has_gold_chunk(record) else "wrong_answer")
