"""The end of a run: verdict, layers by category, failed gates, changed cases, the cost of judging."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_rageval.comparison.case_list import ListedCase
from pytest_rageval.comparison.gate_lines import gate_line, is_warning
from pytest_rageval.comparison.layer_table import layer_rows, total_row
from pytest_rageval.comparison.verdict_sentence import SYMBOLS, with_verdict
from pytest_rageval.runs.reader import run_level_names
from pytest_rageval.runs.row import Row
from pytest_rageval.text import change, counted, denominator, duration, excerpt, score_text
from pytest_rageval.views.parts import TONES, Block, FigureTable, Line, NameList, Section, TableRow, Tone

Content = Mapping[str, Any]
SHOWN_CATEGORIES = 12
SLOWEST = 3
SHOWN_ERRORS = 3
LONGEST_ERROR = 120
"""Characters of a message."""


@dataclass(frozen=True, slots=True)
class RunView:
    """The end of a run on a terminal. `metrics`: empty unless every metric is wanted."""

    head: Section
    layers: Section
    metrics: Section
    gates: Section
    failed_gates: Section
    changed: Section
    notes: Section


def run_view(metrics: Content, rows: Sequence[Row], *, is_verbose: bool = False) -> RunView:
    """Return the view of a run by the content of its metrics.json. `rows`: one for each case."""
    return RunView(
        head=tuple(_head(metrics)),
        layers=tuple(_layers(metrics)),
        metrics=tuple(_metrics(metrics)) if is_verbose else (),
        gates=tuple(gates_to_show(metrics)),
        failed_gates=tuple(_failures(metrics, rows)),
        changed=tuple(_changed(metrics)),
        notes=tuple(run_notes(metrics, rows)),
    )


def _head(metrics: Content) -> Iterator[Line]:
    verdict = with_verdict(metrics)["verdict"]
    tone: Tone = "strong" if verdict["tone"] == "grey" else TONES[verdict["tone"]]
    yield Line(f"{SYMBOLS[verdict['word']]} {verdict['sentence']}", tone)
    outcomes, total, broken = metrics["outcomes"], metrics["total_tests"], metrics["outcomes"]["error"]
    nouns = {"error": "error" if broken == 1 else "errors"}
    nouns["xfailed"] = "known failure" if outcomes["xfailed"] == 1 else "known failures"
    named = ("passed", "failed", "error", "xfailed", "skipped")
    counts = ", ".join(f"{outcomes[name]} {nouns.get(name, name)}" for name in named if outcomes[name])
    partial = " · partial run" if metrics["partial"] else ""
    # The note keeps a broken run, which is scored without its errors, from looking like the best one.
    of = f" of the {total - broken} without errors" if broken and metrics["overall_score"] is not None else ""
    overall = f"overall {score_text(metrics['overall_score'])}{of}{partial}"
    yield Line(f"{counted(total, 'case')}: {counts or 'none ran'} · {overall}")


def _layers(metrics: Content) -> Iterator[Block]:
    """Yield the layers by category, and the results of trials."""
    comparison = metrics.get("comparison")
    total = total_row(metrics, comparison)
    rows = [
        TableRow((row.name, str(row.cases), str(row.passed), *(score_text(cell.score) for cell in row.cells.values())))
        for row in (total, *layer_rows(metrics, comparison))
    ]
    if comparison:
        rows.insert(1, TableRow(("change", "", "", *(change(cell.change) for cell in total.cells.values()))))
    heads = ("", "cases", "passed", *metrics["by_layer"])
    shown = len(rows) - len(metrics["by_category"]) + SHOWN_CATEGORIES
    yield FigureTable(heads, tuple(rows), what="categories: see summary.md", most=shown)
    if not comparison and metrics.get("can_be_baseline", not metrics["partial"]):
        yield Line("no baseline to compare with yet: --rageval-update-baseline makes one")
    yield from trials_line(metrics)


def trials_line(metrics: Content) -> Iterator[Line]:
    """Yield the pass rates over trials, if a case has several."""
    if (repeats := metrics.get("repeats")) and repeats["cases"]:
        shares = f"{repeats['pass_at_n']:.0%} passed at least once, {repeats['pass_hat_n']:.0%} every time"
        yield Line(f"{counted(repeats['trials'], 'trial')} a case: {shares}".replace("%", " %"))


def _metrics(metrics: Content) -> Iterator[FigureTable]:
    """Yield every metric with its change and the cases behind its mean."""
    layers = [*metrics["by_layer"].values(), {"metrics": run_level_names(metrics)}]
    names = (name for layer in layers for name in layer["metrics"] if metrics["metrics"][name]["mean"] is not None)
    rows = (TableRow((name, *(text for _, text in metric_figures(name, metrics)))) for name in names)
    yield FigureTable(("metric", "mean", "change", "scored"), tuple(rows))


def metric_figures(name: str, metrics: Content) -> Iterator[tuple[str, str]]:
    """Yield the figures of a metric of a run by their heads."""
    metric, compared = metrics["metrics"][name], (metrics.get("comparison") or {}).get("metrics", {}).get(name)
    yield "mean", score_text(metric["mean"])
    yield "change", change(compared["delta"] if compared else None)
    yield "scored", denominator(metric)


def gates_to_show(metrics: Content) -> Iterator[Line]:
    """Yield the run's failed gates, and warnings on passed ones."""
    shown_only = " (a partial run: fails nothing)" if metrics["partial"] else ""
    for gate in metrics["gates"]:
        if gate["passed"] is not True or is_warning(gate):
            is_failing = gate["passed"] is False and not metrics["partial"]
            yield Line(gate_line(gate) + shown_only, "worse" if is_failing else "doubtful", "point")


def _failures(metrics: Content, rows: Sequence[Row]) -> Iterator[Block]:
    """Yield failed gates by tag with the cases behind them; known failures are counted, not listed."""
    failed = {row.key for row in rows if row.outcome == "failed"}
    shown = {tag: _ids(key for key in keys if key in failed) for tag, keys in metrics["failure_tags"].items()}
    if any(shown.values()):
        yield Line("failed gates", "strong")
    for tag, ids in sorted(shown.items(), key=lambda item: -len(item[1])):
        yield from [NameList(tag, ids, "worse")] * bool(ids)


def _ids(keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(key.partition("::")[2] for key in keys)


def _changed(metrics: Content) -> Iterator[NameList]:
    advice = " (tighten it with --rageval-update-baseline)" if metrics.get("can_be_baseline") else ""
    lists = cases_by_change(metrics.get("comparison") or {}, "the baseline", is_partial=metrics["partial"])
    for title, tone, cases in lists:
        if not title.startswith("is not in"):
            yield NameList(f"{title}{advice * title.startswith('passes now')}:", _ids(cases), tone)


def cases_by_change(comparison: Content, other: str, *, is_partial: bool) -> Iterator[tuple[str, Tone, list[str]]]:
    """Yield lists of cases that changed against another run, as metrics.json names them: title, tone, keys."""
    titles: Mapping[str, tuple[str, Tone]] = {
        "flipped_to_fail": (f"fails now, did not in {other}", "worse"),
        "fails_new_gate": (f"fails a gate that did not fail in {other}", "worse"),
        "flipped_to_pass": (f"passes now, failed in {other}", "better"),
        "not_measured": (f"failed in {other} by gates that were not measured now", "doubtful"),
        "newly_gated": (f"fails gates that {other} did not measure", "doubtful"),
        "unmeasured": (f"has no score now, had one in {other}", "doubtful"),
        "changed_cases": (f"is another case than in {other}, and is compared with nothing", "doubtful"),
        "only_before": (f"stands in {other}, and is no case any more", "doubtful"),
        "only_after": (f"is not in {other}", "plain"),
    }
    for name, (title, tone) in titles.items():
        # On a partial run the missing cases are expected.
        if (cases := comparison.get(name)) and not (name == "only_before" and is_partial):
            yield title, tone, [case if isinstance(case, str) else case["case_key"] for case in cases]


def run_notes(metrics: Content, rows: Sequence[Row] = ()) -> Iterator[Line]:
    """Yield the slowest calls, cases without gates, the judge and its cost, and the most frequent errors."""
    timed = ((row.latency["total_ms"], row.key) for row in rows if "total_ms" in row.latency)
    if slowest := heapq.nsmallest(SLOWEST, timed, key=lambda call: (-call[0], call[1])):
        named = (f"{key.partition('::')[2]} {duration(ms)}" for ms, key in slowest)
        yield Line("slowest calls: " + ", ".join(named))
    if metrics["without_gate"]:
        yield Line(f"{counted(metrics['without_gate'], 'case was', 'cases were')} examined by no gate", "doubtful")
    if ungated := metrics.get("gold_without_gate"):
        yield Line(f"{counted(ungated, 'case')} passed though no gate looked at the gold", "doubtful")
    if ungated := metrics.get("facts_without_gate"):
        yield Line(f"{counted(ungated, 'case has', 'cases have')} key facts that no gate looks at", "doubtful")
    yield from _abstention_notes(metrics)
    if judge := metrics.get("judge"):
        kind = ", a heuristic without a model; its scores gate only where you wrote the gate" * judge["heuristic"]
        yield Line(f"judge: {judge['model']}{kind}")
    yield from map(Line, _judging(metrics["volatile"]["cost"], metrics["total_tests"]))
    errors = equal_errors(rows)
    for text, number in errors[:SHOWN_ERRORS]:
        if number > 1:
            yield Line(f"{number} × {text}", "doubtful")
    if len(errors) > 1:
        yield Line(f"{len(errors)} different errors: see run.log", "doubtful")


def _abstention_notes(metrics: Content) -> Iterator[Line]:
    """Yield what the wording of answers left open about abstentions."""
    if undecided := metrics.get("undecided"):
        answers = counted(undecided, "answer neither answers nor declines", "answers neither answer nor decline")
        yield Line(f"{answers} plainly: undecided, and no gate of abstention looked at them", "doubtful")
    for language, number in (metrics.get("untrained_languages") or {}).items():
        answers = counted(number, "answer is", "answers are")
        yield Line(f"{answers} in {language}: abstentions were detected without training in it", "doubtful")


def equal_errors(rows: Iterable[Row | ListedCase]) -> list[tuple[str, int]]:
    """Return the different messages of errors, each in a line, with their counts; the most frequent first."""
    broken = (row for row in rows if row.outcome == "error")
    return Counter(excerpt(row.message or row.error_kind or "error", LONGEST_ERROR) for row in broken).most_common()


def _judging(cost: Content, cases: int) -> Iterator[str]:
    """Yield the cost of judging over all trials and the savings of the cache; nothing if no model was asked."""
    cached, tokens = cost["judgements_cached"], cost["judge_total_tokens"]
    if not (cached or tokens):
        return
    dollars, saved = cost["judge_total_usd"], cost["judge_saved_usd"]
    parts = [f"{cached} of {counted(cost['judgements'], 'judgement')} from the cache"]
    if requests := cost.get("judge_requests"):
        parts.append(f"{counted(requests, 'request')} ({requests / cases:.2g} a case)")
    parts += [counted(tokens, "token") if tokens is not None else "tokens unknown"]
    if there := cost.get("judge_tokens_cached"):
        parts[-1] += f" ({there:,} from the provider's cache)"
    parts += [f"${dollars:.4f} spent" if dollars is not None else "cost unknown"]
    if dollars:
        parts[-1] += f" (${dollars / cases:.4f} a case)"
    parts += [f"${saved:.4f} saved"] if saved else []
    yield "judging: " + ", ".join(parts)
