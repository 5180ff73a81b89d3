"""Two runs side by side on the terminal: what was configured, what moved, which questions flipped and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from pytest_rageval.comparison import comparison_words as words
from pytest_rageval.comparison.gate_lines import gate_line
from pytest_rageval.io.suggestions import and_more, listed
from pytest_rageval.render.text.columns import aligned, shortened, wrapped
from pytest_rageval.render.text.summary_terminal import Style, SummaryLine
from pytest_rageval.text import printable

SHOWN_FLIPS = {"flipped_to_fail": 10, "flipped_to_pass": 5, "unmeasured": 5}
SHOWN_CATEGORIES = 12
SHOWN_SETTINGS = 20
SHOWN_CASES = 5
STYLES: Mapping[words.Tone, Style] = {"better": "green", "worse": "red", "doubtful": "yellow", "plain": "plain"}
FLIPS: Mapping[str, Style] = {"flipped_to_fail": "red", "flipped_to_pass": "green", "unmeasured": "yellow"}
METRICS = ("metric", "before", "after", "change", "95 %", "p", "n")
LABEL = 15
"""Columns of the labels at the left of a case."""


def comparison_lines(content: Mapping[str, Any], *, width: int) -> Iterator[SummaryLine]:
    """The lines for a terminal of this width; texts of cases and systems are escaped and cut."""
    tone = words.TONES[content["verdict"]["tone"]]
    yield from (SummaryLine(line, STYLES[tone]) for line in wrapped(_safe(words.verdict_line(content)), width))
    for name in ("before", "after"):
        yield SummaryLine(f"{name:<8}" + _cut(words.side(content[name]), width - 8))
    for problem in words.problems(content):
        yield SummaryLine(_safe(problem), "yellow" if content["compared"] else "red")
    for note in content["notes"]:
        yield SummaryLine(_safe(note), "yellow")
    yield SummaryLine("")
    yield SummaryLine(_safe(content["changed"]["said"]), "yellow" if content["changed"]["warning"] else "plain")
    yield from _configuration(content, width)
    if content["compared"]:
        yield from _metrics(content, width)
        yield from _gates(content)
        yield from _categories(content, width)
        for name in FLIPS:
            yield from _flips(content, name, width)
        yield from _one_sided(content, width)


def _configuration(content: Mapping[str, Any], width: int) -> Iterator[SummaryLine]:
    rows = words.configuration_rows(content)
    room = max((width - 8) // 3, 10)
    shown = [[_cut(name, min(room, 40)), _cut(before, room), "→ " + _cut(after, room)] for name, before, after in rows]
    yield from (SummaryLine(line) for line in aligned(shown[:SHOWN_SETTINGS], indent="  ", to_the_left=True))
    if len(rows) > SHOWN_SETTINGS:
        yield SummaryLine("  " + and_more(len(rows) - SHOWN_SETTINGS, "settings"))


def _metrics(content: Mapping[str, Any], width: int) -> Iterator[SummaryLine]:
    metrics = [metric for _, metric in words.metric_rows(content)]
    if metrics:
        cells = [(_safe(metric["label"]), *words.numbers(metric), str(metric["n_paired"])) for metric in metrics]
        rows = [METRICS, *cells]
        verdicts = ["", *(metric["verdict"] for metric in metrics)]
        styles: list[Style] = ["bold", *(STYLES[words.tone(metric)] for metric in metrics)]
        lines = aligned(rows)
        if cell_len(lines[0]) > width:
            verdicts = ["", *map(_narrow_verdict, cells, verdicts[1:])]
            lines = _named_within([row[:4] for row in rows], width)
        yield SummaryLine("")
        for text, verdict, style in zip(lines, verdicts, styles, strict=True):
            yield from _with_verdict(text, verdict, style, width)
    if rest := words.quiet_metrics(content):
        yield SummaryLine(rest)


def _narrow_verdict(row: Sequence[str], verdict: str) -> str:
    """A metric's verdict with what its row has no room for."""
    return f"95 % {row[4]}, p {row[5]}, n {row[6]}: {verdict}"


def _named_within(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """A table whose names, in the first column, are cut to what its numbers leave of a line."""
    room = max(width - max(map(cell_len, aligned([["", *row[1:]] for row in rows]))), 10)
    return aligned([[shortened(row[0], room), *row[1:]] for row in rows])


def _with_verdict(text: str, verdict: str, style: Style, width: int) -> Iterator[SummaryLine]:
    """The verdict at the end of the line where it fits, else on one of its own."""
    if not verdict or cell_len(text) + 2 + len(verdict) <= width:
        yield SummaryLine(f"{text}  {verdict}".rstrip(), style)
        return
    yield SummaryLine(text, style)
    yield from (SummaryLine(f"    {line}", style) for line in wrapped(verdict, max(width - 4, 10)))


def _gates(content: Mapping[str, Any]) -> Iterator[SummaryLine]:
    if content["gates"]:
        yield SummaryLine("")
    for gate in content["gates"]:
        verdict = {True: "holds", False: "FAILS", None: "says nothing"}[gate["passed"]]
        style: Style = {True: "plain", False: "red", None: "yellow"}[gate["passed"]]  # type: ignore[assignment]
        yield SummaryLine(_safe(f"{verdict}: {gate_line(gate)}"), style)


def _categories(content: Mapping[str, Any], width: int) -> Iterator[SummaryLine]:
    rows = words.category_rows(content)
    if not rows:
        return
    head = ("", "cases", "passed", "to fail", "to pass", *words.layers(content))
    named = [(shortened(printable(row[0]), 24), *row[1:]) for row in rows[:SHOWN_CATEGORIES]]
    lines = aligned([head, *named])
    if cell_len(lines[0]) > width:
        lines = _named_within([row[:5] for row in (head, *named)], width)
    yield SummaryLine("")
    yield from (SummaryLine(text, "bold" if number == 0 else "plain") for number, text in enumerate(lines))
    if len(rows) > SHOWN_CATEGORIES:
        yield SummaryLine(and_more(len(rows) - SHOWN_CATEGORIES, "categories"))


def _flips(content: Mapping[str, Any], name: str, width: int) -> Iterator[SummaryLine]:
    cases, most = content[name], SHOWN_FLIPS[name]
    if not cases:
        return
    yield SummaryLine("")
    yield SummaryLine(f"{words.TITLES[name]} ({len(cases)})", FLIPS[name])
    for case in cases[:most]:
        yield SummaryLine("")
        yield SummaryLine("  " + _cut(case["case_key"], width - 2), FLIPS[name])
        yield from (SummaryLine(line) for line in _labelled(_about(case), width))
    if len(cases) > most:
        yield SummaryLine("")
        yield SummaryLine(f"  {and_more(len(cases) - most)}: --format html shows more of them, --format json all")


def _about(case: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What there is to say of one case, by a label."""
    detail = case["detail"]
    if detail and detail["question"] is not None:
        yield "question", detail["question"]
    yield from (("why", gate) for gate in words.failed_gates(case))
    if case.get("scores"):
        yield "scores", words.moved_scores(case, 5)
    if detail is None:
        yield "records", "none were kept of this case"
        return
    golds = words.gold_rows(detail)
    yield from ((gold, f"{move}, {place}") for gold, move, place in golds)
    if not any(gold["rank_before"] != gold["rank_after"] for gold in detail["golds"]):
        yield from _chunks(detail)
    yield from words.answers(detail)


def _chunks(detail: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Where no gold moved, what else came or went."""
    for where, label in (("before", "gone"), ("after", "new")):
        rows = words.chunk_rows(detail, "before" if where == "before" else "after")
        moved = [f"{rank} {place}" for rank, place, what in rows if what.endswith(label)]
        if moved and detail["chunks_before"] is not None and detail["chunks_after"] is not None:
            yield label, listed(moved, 3)


def _labelled(rows: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    for label, text in rows:
        yield f"    {label:<{LABEL}}{_cut(text, width - LABEL - 4)}".rstrip()


def _one_sided(content: Mapping[str, Any], width: int) -> Iterator[SummaryLine]:
    lines = [
        f"{words.TITLES[name]} ({len(content[name])}): {listed(content[name], SHOWN_CASES)}"
        for name in words.ONE_SIDED
        if content[name]
    ]
    lines += [line for line in (words.errors(content),) if line]
    if lines:
        yield SummaryLine("")
    yield from (SummaryLine(_cut(line, 3 * width)) for line in lines)


def _safe(text: str) -> str:
    return " ".join(printable(text).split())


def _cut(text: str, width: int) -> str:
    return shortened(printable(text), max(width, 10))
