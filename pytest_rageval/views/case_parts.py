"""Parts of a case's view: texts with marked quotations, chunks, key facts, trials, draft, comparison."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

from pytest_rageval.assertions.checking import assertion_words
from pytest_rageval.cases.drafts import answer_draft, drafts_file_of
from pytest_rageval.comparison.case_diff import best_chunks, named_chunk, place_of
from pytest_rageval.metrics.answer import stated_facts
from pytest_rageval.metrics.tools import expected_words
from pytest_rageval.model import EvalCase
from pytest_rageval.text import printable

LONGEST_TEXT = 4_000
"""Characters of a question or an answer; chunks are as long as in results.jsonl."""
OUTCOMES = {
    "passed": ("✔", "passed"),
    "failed": ("✘", "FAILED"),
    "error": ("!", "ERROR"),
    "xfailed": ("✘", "known failure"),
    "skipped": ("–", "skipped"),
}
"""The symbol and the word of each outcome."""
FACT_METRIC = "key_fact_recall"
"""The metric that counts the stated facts."""
FACT_MARKS = {True: "✔ ", False: "✘ ", None: "· "}
"""The mark of a key fact: stated, missing, or not scored."""


def limited(text: str | None) -> str | None:
    """Cut a text to the length that is shown."""
    if text is None or len(text) <= LONGEST_TEXT:
        return text
    return text[:LONGEST_TEXT] + "…"


def error_line(error: Mapping[str, Any]) -> str:
    """Return the error of a record in a line."""
    return f"{error['kind']}: {error['message'] or 'its message is left out'}"


class TextPart(NamedTuple):
    """A part of a text, marked if it is a quotation."""

    is_marked: bool
    text: str


def marked_text(text: str, snippets: Iterable[str]) -> Sequence[TextPart]:
    """Mark the first occurrence of each snippet, whatever its white space and case; () if there is none."""
    found = (_span(text, snippet) for snippet in snippets)
    spans = sorted(span for span in found if span is not None)
    parts: list[TextPart] = []
    end = 0
    for start, stop in spans:
        if stop <= end:
            continue
        if start > end:
            parts.append(TextPart(is_marked=False, text=text[end:start]))
        parts.append(TextPart(is_marked=True, text=text[max(start, end) : stop]))
        end = stop
    if parts and end < len(text):
        parts.append(TextPart(is_marked=False, text=text[end:]))
    return parts


def _span(text: str, snippet: str) -> tuple[int, int] | None:
    words = snippet.split()
    if not words:
        return None
    at = text.find(snippet)
    if at >= 0:
        return at, at + len(snippet)
    # Compiled only if the plain search fails: it takes longer than the rest of a chunk's row.
    pattern = r"\s+".join(map(re.escape, words))
    match = re.search(pattern, text, re.IGNORECASE)
    return match.span() if match else None


class ChunkRow(NamedTuple):
    """A retrieved chunk, or a gold that was not retrieved."""

    rank: int | None
    """None for a gold that was not retrieved."""
    kind: str
    """gold, other or missed."""
    mark: str
    """The golds that the chunk matches, in words."""
    place: str
    score: float | None
    text: str | None
    """The text of the chunk, or what a missed gold quotes; None if it is not known."""
    note: str = ""
    """How the rank explains a failure; '' if it does not."""
    parts: Sequence[TextPart] = ()
    """The text with the quotations of golds marked; () if it has none."""


def chunk_rows(
    record: Mapping[str, Any], case: EvalCase | None, earlier: Mapping[str, Any] | None, k: int | None
) -> Iterator[ChunkRow]:
    """Yield the retrieved chunks by rank, then the golds that were not retrieved.

    None of these for a system that reports no chunks: it may have retrieved all of them.
    """
    golds = () if _reports_no_chunks(record) else _gold_names(case)
    matched: set[int] = set()
    for chunk in record["retrieved_chunks"]:
        matches = chunk["matches"]
        is_beyond_k = k is not None and chunk["rank"] > k
        is_late = is_beyond_k and not matched.issuperset(matches)
        matched.update(matches)
        kind = "other"
        mark = "other"
        if matches:
            kind = "gold"
            mark = f"gold {', '.join(str(gold + 1) for gold in matches)}"
        yield ChunkRow(
            rank=chunk["rank"],
            kind=kind,
            mark=mark,
            place=place_of(chunk),
            score=chunk["score_final"],
            text=chunk["text"],
            note=f", beyond k = {k}" if is_late else "",
            parts=marked_text(chunk["text"] or "", _snippets(case, record, matches)),
        )
    before = best_chunks(earlier["retrieved_chunks"]) if earlier else {}
    for number, name in enumerate(golds):
        if number in matched:
            continue
        note = ""
        text = " … ".join(_snippets(case, record, [number])) or None
        if number in before:
            note = f"; it stood at rank {before[number]['rank']} before"
            # A gold that is labelled by its place alone has the text of the chunk that matched it.
            text = text or before[number].get("text")  # a baseline keeps the places alone
        mark = f"gold {number + 1} of {len(golds)}"
        yield ChunkRow(rank=None, kind="missed", mark=mark, place=name, score=None, text=text, note=note)


def no_chunks(record: Mapping[str, Any]) -> str:
    """Return why there are no chunks; '' if there are some."""
    if record["retrieved_chunks"]:
        return ""
    if record["error"]:
        return "no chunks were recorded: the case ended in an error"
    return "the system reports no chunks" if _reports_no_chunks(record) else "no chunks were retrieved"


def _reports_no_chunks(record: Mapping[str, Any]) -> bool:
    reported = record.get("reported")
    return reported is not None and "chunks" not in reported


def _snippets(case: EvalCase | None, record: Mapping[str, Any], golds: Sequence[int]) -> list[str]:
    """Return the snippets of some golds; none if retrieval was measured by ids."""
    if case is None or record.get("gold") == "ids":
        return []
    supports = case.gold.supports or ()
    matched = [supports[gold] for gold in golds if gold < len(supports)]
    return list(chain.from_iterable(anchor.snippets for anchor in matched))


def _gold_names(case: EvalCase | None) -> list[str]:
    if case is None:
        return []
    if case.gold.supports:
        return [str(anchor) for anchor in case.gold.supports]
    return list(map(named_chunk, case.gold.chunk_ids or ()))


def gold_labels(case: EvalCase) -> Iterator[tuple[str, str]]:
    """Yield what a case expects, by name."""
    gold = case.gold
    for number, answer in enumerate(gold.answers or (), start=1):
        yield f"answer {number}", answer
    for number, name in enumerate(_gold_names(case), start=1):
        yield f"gold {number}", name
    if gold.support_groups:
        yield "groups", " or ".join(str([index + 1 for index in group]) for group in gold.support_groups)
    for field in ("key_facts", "concepts", "constraints", "kg_entities", "kg_edges"):
        values = getattr(gold, field)
        if values is not None:
            yield field, "; ".join(map(str, values)) or "nothing is expected"
    for number, assertion in enumerate(case.assertions, start=1):
        yield f"assertion {number}", assertion_words(assertion)
    for number, tool in enumerate(case.expected_tools or (), start=1):
        yield f"tool {number}", expected_words(tool) + (" (optional)" if tool.optional else "")
    if case.forbidden_tools:
        yield "forbidden tools", ", ".join(case.forbidden_tools)
    if case.max_tool_calls is not None:
        yield "tool calls", f"at most {case.max_tool_calls}"


class DraftLine(NamedTuple):
    """A bad answer as a draft of a case."""

    json: str
    file: str
    """The file of drafts to which it belongs."""
    command: str
    """The command that adds it there."""


def draft_line(record: Mapping[str, Any], line: Mapping[str, Any] | None, run_id: str) -> DraftLine | None:
    """Return the draft of a case; None if the run keeps no texts. Invisible characters are escaped as in JSON."""
    draft = answer_draft(record, line, run_id)
    if draft is None:
        return None
    command = f"rageval cases draft {shlex.quote(run_id)} {shlex.quote(record['case_key'])}"
    text = json.dumps(draft, ensure_ascii=False)
    if printable(text) != text:
        text = json.dumps(draft).replace("##", "#\\u0023")
    return DraftLine(text, drafts_file_of(record), command)


@dataclass(frozen=True, slots=True)
class FailingGate:
    """A gate that fails."""

    metric: str
    """The metric, with its cut-off."""
    value: str
    """The value of the case."""
    threshold: str
    """The limit, as in `>= 0.5`."""
    tag: str
    """The tag of the failure; '' without one."""
    terms: str
    """The arithmetic of the value; '' if it is not known."""
    is_new: bool
    """The case failed in the other run too, but not by this gate."""

    @property
    def note(self) -> str:
        """Return the note on a gate that is new; '' for any other."""
        return "new: did not fail before" if self.is_new else ""

    @property
    def line(self) -> str:
        """Return `mrr = 0.5, needs >= 1 (L3_rank): 1 / rank 2`."""
        line = f"{self.metric} = {self.value}, needs {self.threshold}"
        if self.tag:
            line += f" ({self.tag})"
        return f"{line}: {self.terms}" if self.terms else line


class KeyFact(NamedTuple):
    """A key fact; `is_stated` is None if no metric scored it."""

    text: str
    is_stated: bool | None


def key_facts(facts: Sequence[str], record: Mapping[str, Any], answer: str | None) -> list[KeyFact]:
    """Return the facts as `key_fact_recall` found them in the whole answer.

    `is_stated` is None if the metric did not score, or if its score then differs from what it finds now.
    """
    unknown = [KeyFact(fact, None) for fact in facts]
    recall = record.get("scores", {}).get(FACT_METRIC)
    if recall is None or answer is None:
        return unknown
    written = [fact for fact in facts if fact.strip()]
    stated = stated_facts(answer, written)
    is_as_scored = bool(written) and abs(sum(stated) / len(written) - recall) <= 1e-9
    if not is_as_scored:
        return unknown
    return [KeyFact(fact, is_stated) for fact, is_stated in zip(written, stated, strict=True)]
