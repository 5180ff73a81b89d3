"""The end of a run on the terminal: layers by category, what changed, which gates failed and for which cases."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from rich.cells import cell_len

from pytest_rageval.comparison.gate_lines import gate_line, is_warning
from pytest_rageval.comparison.layer_table import LayerRow, layer_rows, total_row
from pytest_rageval.comparison.verdict_sentence import SYMBOLS, with_verdict
from pytest_rageval.io.suggestions import and_more, listed
from pytest_rageval.numbers import change, denominator, duration, score_text
from pytest_rageval.render.text.columns import aligned, blocks, shortened
from pytest_rageval.runs.reader import run_level_names
from pytest_rageval.runs.row import Row
from pytest_rageval.text import counted

Style = Literal["plain", "bold", "green", "red", "yellow"]
SHOWN_CASES = 5
SHOWN_CATEGORIES = 12
SLOWEST = 3


TONES: Mapping[str, Style] = {"red": "red", "amber": "yellow", "green": "green", "grey": "bold"}


class SummaryLine(NamedTuple):
    """A line and how it is meant: the face that prints it decides about colour."""

    text: str
    style: Style = "plain"


def summary(metrics: Mapping[str, Any], rows: Sequence[Row], *, width: int, verbose: bool) -> Iterator[SummaryLine]:
    """The lines of the summary for a terminal of this width, the verdict first. `rows`: one a case."""
    verdict = with_verdict(metrics)["verdict"]
    yield SummaryLine(f"{SYMBOLS[verdict['word']]} {verdict['sentence']}", TONES[verdict["tone"]])
    yield SummaryLine(_head(metrics))
    yield SummaryLine("")
    yield from _table(metrics, width)
    yield from _repeats(metrics)
    if verbose:
        yield from _metrics(metrics, width)
    yield from _gates(metrics)
    yield from _failures(metrics, rows, width)
    yield from _flips(metrics, width)
    yield from _slowest(rows)
    yield from _notes(metrics, rows)


def _head(metrics: Mapping[str, Any]) -> str:
    outcomes = metrics["outcomes"]
    named = {
        "passed": "passed",
        "failed": "failed",
        "error": "errors" if outcomes["error"] != 1 else "error",
        "xfailed": "known failures" if outcomes["xfailed"] != 1 else "known failure",
        "skipped": "skipped",
    }
    counts = ", ".join(f"{outcomes[name]} {title}" for name, title in named.items() if outcomes[name])
    partial = " · partial run" if metrics["partial"] else ""
    total, broken = metrics["total_tests"], outcomes["error"]
    # Without the cases that broke, a broken run would look like the best one.
    of = f" of the {total - broken} without errors" if broken and metrics["overall_score"] is not None else ""
    cases = counted(total, "case")
    return f"{cases}: {counts or 'none ran'} · overall {score_text(metrics['overall_score'])}{of}{partial}"


def _repeats(metrics: Mapping[str, Any]) -> Iterator[SummaryLine]:
    repeats = metrics.get("repeats")
    if repeats and repeats["cases"]:
        shares = f"{repeats['pass_at_n']:.0%} passed at least once, {repeats['pass_hat_n']:.0%} every time"
        yield SummaryLine(f"{counted(repeats['trials'], 'trial')} a case: {shares}".replace("%", " %"))


def _table(metrics: Mapping[str, Any], width: int) -> Iterator[SummaryLine]:
    """Layers by category."""
    comparison = metrics.get("comparison")
    total, categories = total_row(metrics, comparison), layer_rows(metrics, comparison)
    rows = [["", "cases", "passed", *metrics["by_layer"]], _cells(total)]
    if comparison:
        rows.append(["change", "", "", *(change(cell.change) for cell in total.cells.values())])
    rows += [_cells(row) for row in categories[:SHOWN_CATEGORIES]]
    yield from _blocks(rows, width)
    if len(categories) > SHOWN_CATEGORIES:
        yield SummaryLine(and_more(len(categories) - SHOWN_CATEGORIES, "categories: see summary.md"))
    if not metrics.get("comparison") and metrics.get("can_be_baseline", not metrics["partial"]):
        yield SummaryLine("no baseline to compare with yet: --rageval-update-baseline makes this run the first")


def _cells(row: LayerRow) -> list[str]:
    scores = (score_text(cell.score) for cell in row.cells.values())
    return [shortened(row.name, 24), str(row.cases), str(row.passed), *scores]


def _blocks(rows: Sequence[Sequence[str]], width: int) -> Iterator[SummaryLine]:
    """A table no wider than the terminal: columns that have no room stand below, under the same names."""
    for number, block in enumerate(blocks(rows, width)):
        if number:
            yield SummaryLine("")
        head, *lines = aligned(block)
        yield SummaryLine(head, "bold")
        yield from map(SummaryLine, lines)


def _metrics(metrics: Mapping[str, Any], width: int) -> Iterator[SummaryLine]:
    """Every metric with its change and what its mean was taken over."""
    rows = [["metric", "mean", "change", "scored"]]
    for layer in [*metrics["by_layer"].values(), {"metrics": run_level_names(metrics)}]:
        for name in layer["metrics"]:
            metric = metrics["metrics"][name]
            compared = _compared(name, metrics)
            if metric["mean"] is not None:
                delta = change(compared["delta"] if compared else None)
                rows.append([name, score_text(metric["mean"]), delta, denominator(metric)])
    yield SummaryLine("")
    yield from _blocks(rows, width)


def _compared(name: str, metrics: Mapping[str, Any]) -> Mapping[str, Any] | None:
    comparison = metrics.get("comparison") or {}
    metric: Mapping[str, Any] | None = comparison.get("metrics", {}).get(name)
    return metric


def _gates(metrics: Mapping[str, Any]) -> Iterator[SummaryLine]:
    """Gates of the run that do not hold, and what one should know of those that do."""
    for gate in metrics["gates"]:
        if gate["passed"] is not True or is_warning(gate):
            shown_only = " (a partial run: fails nothing)" if metrics["partial"] else ""
            is_failing = gate["passed"] is False and not metrics["partial"]
            yield SummaryLine("")
            yield SummaryLine(gate_line(gate) + shown_only, "red" if is_failing else "yellow")


def _failures(metrics: Mapping[str, Any], rows: Sequence[Row], width: int) -> Iterator[SummaryLine]:
    """Failed gates by tag with the cases behind them; known failures are counted, not listed."""
    failed = {row.key for row in rows if row.outcome == "failed"}
    shown = {tag: [key for key in keys if key in failed] for tag, keys in metrics["failure_tags"].items()}
    shown = {tag: keys for tag, keys in shown.items() if keys}
    if shown:
        yield SummaryLine("")
        yield SummaryLine("failed gates", "bold")
    for tag, keys in sorted(shown.items(), key=lambda item: -len(item[1])):
        start = f"{tag}  {len(keys)}: "
        yield SummaryLine(start + _listed(keys, width - len(start)), "red")


def _listed(keys: Sequence[str], width: int) -> str:
    """As many case ids as fit, at least one, and how many more there are."""
    keys = [key.partition("::")[2] for key in keys]
    for shown in range(min(len(keys), SHOWN_CASES), 0, -1):
        text = listed(keys, shown)
        if cell_len(text) <= width:
            break
    return text


def _flips(metrics: Mapping[str, Any], width: int) -> Iterator[SummaryLine]:
    comparison = metrics.get("comparison") or {}
    advice = " (tighten it with --rageval-update-baseline)" if metrics.get("can_be_baseline") else ""
    titles: tuple[tuple[str, str, Style], ...] = (
        ("flipped_to_fail", "fails now, did not in the baseline", "red"),
        ("flipped_to_pass", f"passes now, failed in the baseline{advice}", "green"),
        ("not_measured", "failed in the baseline by gates that were not measured now", "yellow"),
        ("newly_gated", "fails gates that the baseline did not measure", "yellow"),
        ("unmeasured", "has no score now, had one in the baseline", "yellow"),
        ("changed_cases", "is another case than in the baseline, and is compared with nothing", "yellow"),
        ("only_before", "stands in the baseline, and is no case any more", "yellow"),
    )
    # Of a part of the cases the others are no news.
    left_out = ("only_before",) if metrics["partial"] else ()
    for name, title, style in titles:
        if (cases := comparison.get(name)) and name not in left_out:
            keys = [case if isinstance(case, str) else case["case_key"] for case in cases]
            yield SummaryLine("")
            yield SummaryLine(f"{title}:", style)
            yield SummaryLine(f"  {_listed(keys, 3 * width)}", style)


def _slowest(rows: Sequence[Row]) -> Iterator[SummaryLine]:
    timed = ((row.latency["total_ms"], row.key) for row in rows if "total_ms" in row.latency)
    if slowest := heapq.nsmallest(SLOWEST, timed, key=lambda call: (-call[0], call[1])):
        yield SummaryLine("")
        named = (f"{key.partition('::')[2]} {duration(ms)}" for ms, key in slowest)
        yield SummaryLine("slowest calls: " + ", ".join(named))


def _judging(cost: Mapping[str, Any]) -> Iterator[SummaryLine]:
    """What judging took over all trials, and what the cache spared; nothing where no model was asked."""
    cached, total = cost["judgements_cached"], cost["judgements"]
    if not (cached or cost["judge_total_tokens"]):
        return
    dollars, saved = cost["judge_total_usd"], cost["judge_saved_usd"]
    parts = [f"{cached} of {counted(total, 'judgement')} from the cache"]
    parts += [
        f"{counted(cost['judge_total_tokens'], 'token')}"
        if cost["judge_total_tokens"] is not None
        else "tokens unknown"
    ]
    parts += [f"${dollars:.4f} spent" if dollars is not None else "cost unknown"]
    parts += [f"${saved:.4f} saved"] if saved else []
    yield SummaryLine("judging: " + ", ".join(parts))


def _notes(metrics: Mapping[str, Any], rows: Sequence[Row]) -> Iterator[SummaryLine]:
    if metrics["without_gate"]:
        unexamined = counted(metrics["without_gate"], "case was", "cases were")
        yield SummaryLine(f"{unexamined} examined by no gate", "yellow")
    if ungated := metrics.get("gold_without_gate"):
        yield SummaryLine(f"{counted(ungated, 'case')} passed though no gate looked at the gold", "yellow")
    judge = metrics.get("judge")
    if judge and not judge["heuristic"]:
        yield SummaryLine(f"judge: {judge['model']}")
    elif judge:
        yield SummaryLine(
            f"judge: {judge['model']}, a heuristic without a model; its scores gate only where you wrote the gate"
        )
    yield from _judging(metrics["volatile"]["cost"])
    errors = {row.message for row in rows if row.outcome == "error"} - {None, ""}
    if len(errors) > 1:
        yield SummaryLine(f"{len(errors)} different errors: see run.log", "yellow")
