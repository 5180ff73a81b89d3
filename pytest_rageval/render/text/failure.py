"""The message of a failing case: gate, question, expected and retrieved chunks, without a traceback."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_rageval.cases.conversations import ASKED, REPLY
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.metrics.abstention import abstention
from pytest_rageval.metrics.answer import facts_in_answer
from pytest_rageval.metrics.assertions import broken_assertions
from pytest_rageval.metrics.tools import broken_tool_rules
from pytest_rageval.model import Anchor, Answer, CaseResult, Chunk, EvalCase, Gold, Observation
from pytest_rageval.runs.causes import passed_alone
from pytest_rageval.runs.records.tool_call_lines import tool_call_lines
from pytest_rageval.text import printable, score_text
from pytest_rageval.views.case_parts import FACT_METRIC

WIDTH = 160
"""Characters of a question or an answer that are shown."""
CHUNKS = 8
"""Chunks and ids that are shown."""


def failure_text(result: CaseResult, reason: str | None = None) -> str:
    """Return the message of a failing case: the first line names the failed gates, or another `reason`."""
    lines = [reason or "; ".join(map(str, result.failed_gates))]
    if result.observation is not None:
        if any(gate.metric in _OF_ABSTENTION for gate in result.failed_gates):
            lines += _who_decided(result.observation)
        lines += [f"  {name:<10} {printable(text)}".rstrip() for name, text in _facts(result)]
    lines.append(f"  case       {result.case.source}")
    return "\n".join(lines)


_OF_ABSTENTION = frozenset({"abstention_accuracy", "over_abstention", "hallucinated"})


def _who_decided(obs: Observation) -> Iterator[str]:
    """Yield a note if the abstention was detected from the wording, or by a judge, and not by the system."""
    seen = abstention(obs)
    verdict = "an abstention" if seen.value else "no abstention"
    if seen.decided_by == "judge":
        yield f"  judge      {verdict}, by the judge: if that is wrong, have the system send 'abstained'"
    if seen.decided_by == "phrasing":
        yield (
            f"  phrasing   {verdict}, by the wording of the answer alone: if that is wrong, have the system send "
            "'abstained', use a model as judge, or list your bot's refusals as abstention.phrases"
        )


def _facts(result: CaseResult) -> Iterator[tuple[str, str]]:
    case = result.case
    obs = result.observation
    assert obs is not None
    yield "question", _cut(case.question)
    yield from _said_before(result)
    needs_all = any(gate.metric.startswith("recall_all") for gate in result.failed_gates)
    expected = "  ·  ".join(_expected(case, needs_all=needs_all))
    if expected:
        yield "expected", expected
    # None is a system that reports no chunks; an empty list retrieved none.
    if obs.answer.chunks is not None:
        yield from _retrieved(obs)
    yield from _tool_calls(obs)
    if obs.answer.text is not None:
        yield "answer", _answer(obs.answer)
    missing = _missing(result)
    if missing:
        yield "missing", missing
    yield from _key_facts(result)
    yield from _broken_assertions(result)
    for line in broken_tool_rules(result.details):
        yield "tools", line


def _said_before(result: CaseResult) -> Iterator[tuple[str, str]]:
    """Yield the rewrite of a follow-up, or the end of what was said before it; nothing for a first question."""
    case = result.case
    obs = result.observation
    assert obs is not None
    history = case.history or ()
    if obs.dialogue is not None:
        history = obs.dialogue.history
    said = [turn.text for turn in history if turn.role in (ASKED, REPLY)]
    if not said:
        return
    if case.rewrite and case.rewrite.strip():
        yield "rewrite", _cut(case.rewrite)
    else:
        yield "before", _cut_front("  →  ".join(said))
    if result.rewritten is None:
        return
    thresholds = {gate.metric: gate.threshold for gate in result.failed_gates}
    alone = passed_alone(thresholds, result.rewritten.scores)
    if alone and len(alone) == len(thresholds):
        scores = [f"{metric} {score_text(score)}" for metric, score in alone.items()]
        yield "alone", f"the rewrite scores {', '.join(scores)}: the system does not resolve the reference"


def _expected(case: EvalCase, *, needs_all: bool) -> Iterator[str]:
    gold = case.gold
    if not case.answerable:
        yield "an abstention: the documents hold no answer"
    if gold.answers:
        yield f'"{_cut(gold.answers[0])}"'
    if gold.supports:
        names = [_anchor_words(anchor) for anchor in gold.supports]
        yield _groups(gold, names, "all of  " if needs_all else "any of  ")
    elif gold.chunk_ids and len(gold.chunk_ids) > 1:
        yield "any of chunks " + ", ".join(gold.chunk_ids[:CHUNKS])
    elif gold.chunk_ids:
        yield f"chunk {gold.chunk_ids[0]}"
    if gold.kg_entities and not gold.supports:
        yield "entities " + ", ".join(gold.kg_entities[:CHUNKS])


def _anchor_words(anchor: Anchor) -> str:
    if not anchor.snippets:
        return str(anchor)
    return f'{anchor}: "{_cut(anchor.snippets[0])}"'


def _groups(gold: Gold, names: list[str], these: str) -> str:
    if not gold.support_groups:
        listed = "  ·  ".join(names)
        return these + listed if len(names) > 1 else listed
    alternatives = [" and ".join(names[index] for index in group) for group in gold.support_groups]
    return "all of  " + "  or  ".join(alternatives)


def _retrieved(obs: Observation) -> Iterator[tuple[str, str]]:
    """Yield a line for each chunk: its rank, whether it is gold, its place."""
    chunks = obs.answer.chunks or ()
    if not chunks:
        yield "retrieved", "no chunk"
    shown = chunks[:CHUNKS]
    hits = [rank < len(obs.hits) and bool(obs.hits[rank]) for rank in range(len(shown))]
    label = "retrieved"
    for rank, (chunk, is_hit) in enumerate(zip(shown, hits, strict=True), start=1):
        place = " > ".join(filter(None, (chunk.rel_path, chunk.heading_path)))
        name = place or _id(chunk)
        mark = "✓ " if is_hit else "  "
        # With its dot, `retrieved  1. notes/a.md` reads as a rank, and not as a count.
        yield label, f"{rank}. {mark}{name}" if any(hits) else f"{rank}. {name}"
        label = ""
    if len(chunks) > CHUNKS:
        yield "", and_more(len(chunks) - CHUNKS)


def _id(chunk: Chunk) -> str:
    """Return the id of a chunk without a place, with the kind of id: `1. 0` would read as a figure."""
    if chunk.chunk_id:
        return f"chunk {chunk.chunk_id}"
    if chunk.doc_id:
        return f"document {chunk.doc_id}"
    return "?"


def _tool_calls(obs: Observation) -> Iterator[tuple[str, str]]:
    """Yield a line for each tool call; nothing if the system reports none."""
    lines = tool_call_lines(obs.answer, obs.matching)
    if obs.answer.tool_calls is not None and not lines:
        yield "calls", "no tool"
    label = "calls"
    for line in lines:
        yield label, line
        label = ""


def _missing(result: CaseResult) -> str:
    """Return what of the gold answer is not in the answer, if that fails the case."""
    # Where another gate failed, what is missing is not why.
    if not any(gate.metric == "gold_in_answer" for gate in result.failed_gates):
        return ""
    details = result.details.get("gold_in_answer", {})
    return _cut(str(details.get("missing", "")))


def _key_facts(result: CaseResult) -> Iterator[tuple[str, str]]:
    """Yield each key fact with a mark, missing ones first, if they fail the case."""
    if not any(gate.metric == FACT_METRIC for gate in result.failed_gates):
        return
    assert result.observation is not None
    facts = sorted(facts_in_answer(result.observation), key=lambda fact: fact[1])
    label = "key facts"
    for fact, is_stated in facts[:CHUNKS]:
        mark = "✔" if is_stated else "✘"
        yield label, f"{mark} {_cut(fact)}"
        label = ""
    if len(facts) > CHUNKS:
        yield "", and_more(len(facts) - CHUNKS)


def _broken_assertions(result: CaseResult) -> Iterator[tuple[str, str]]:
    """Yield each broken assertion with what was received."""
    details = result.details.get("assertions", {})
    label = "broken"
    for line in broken_assertions(details):
        yield label, line
        label = ""


def _answer(answer: Answer) -> str:
    if answer.abstained:
        reason = f" ({answer.abstain_reason})" if answer.abstain_reason else ""
        text = f': "{_cut(answer.text)}"' if answer.text else ""
        return f"abstained{reason}{text}"
    return f'"{_cut(answer.text or "")}"'


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def _cut_front(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= WIDTH:
        return line
    return "…" + line[1 - WIDTH :]
