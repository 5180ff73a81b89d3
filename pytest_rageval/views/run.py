"""The figures of a run on a terminal: layers by category, failed gates, changed cases, the cost of judging."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_rageval.comparison.gate_lines import gate_line, gate_name, gate_state, is_warning
from pytest_rageval.comparison.layer_table import LayerRow, layer_rows, total_row
from pytest_rageval.comparison.listed_case import ListedCase
from pytest_rageval.comparison.renamed_cases import renamed_of
from pytest_rageval.comparison.verdict_sentence import with_verdict
from pytest_rageval.io.suggestions import listed
from pytest_rageval.runs.flaky_cases import confirmed_line, flaky_lines
from pytest_rageval.runs.reader import run_level_names
from pytest_rageval.runs.row import Row
from pytest_rageval.text import NO_VALUE, case_count, change, counted, denominator, duration, excerpt, score_text
from pytest_rageval.views.compared_metrics import shown_change
from pytest_rageval.views.operations import operation_lines
from pytest_rageval.views.parts import Block, FigureTable, Line, NameList, Section, TableRow, Tone
from pytest_rageval.views.rewrite import rewrite_line
from pytest_rageval.views.turns import turns_line

Content = Mapping[str, Any]
SHOWN_CATEGORIES = 12
SHOWN_NAMES = 3
SLOWEST = 3
SHOWN_ERRORS = 3
LONGEST_ERROR = 120
"""Characters of a message."""


@dataclass(frozen=True, slots=True)
class RunView:
    """The figures of a run on a terminal; causes and verdict follow in a `VerdictView`."""

    head: Section
    """The outcomes of all cases."""
    layers: Section
    """The scores of layers by category; empty if all cases ended in errors."""
    metrics: Section
    """Every metric with its change; empty unless they are wanted."""
    gates: Section
    """The gates of the run that fail, pass with a warning, or were not measured; empty if all cases ended in errors."""
    changed: Section
    """The cases that differ from the baseline."""
    notes: Section
    """The slowest calls if wanted, cases that no gate examined, the judge and its cost."""


def run_view(
    metrics: Content, rows: Sequence[Row], *, is_verbose: bool = False, has_durations: bool = False
) -> RunView:
    """Return the figures of a run by the content of its metrics.json.

    rows           one for each case
    is_verbose     True for every metric
    has_durations  True for the slowest calls
    """
    # Where nothing was answered there is no score: tables of dashes would hide the cause.
    is_all_errors = 0 < metrics["total_tests"] == metrics["outcomes"]["error"]
    slowest = tuple(_slowest(rows)) if has_durations else ()
    return RunView(
        head=(_outcomes(metrics),),
        layers=() if is_all_errors else tuple(_layers(metrics)),
        metrics=tuple(_metrics(metrics)) if is_verbose else (),
        gates=() if is_all_errors else tuple(_gates(metrics)),
        changed=() if is_all_errors else tuple(_changed(metrics)),
        notes=(*slowest, *run_notes(metrics, rows)),
    )


def _outcomes(metrics: Content) -> Line:
    """Return `12 cases: 7 passed, 5 failed · overall 0.583`."""
    counts = ", ".join(_outcome_counts(metrics["outcomes"]))
    return Line(f"{case_count(metrics)}: {counts or 'none ran'} · {_overall(metrics)}")


def _outcome_counts(outcomes: Mapping[str, int]) -> Iterator[str]:
    nouns = {
        "passed": "passed",
        "failed": "failed",
        "error": "error" if outcomes["error"] == 1 else "errors",
        "xfailed": "known failure" if outcomes["xfailed"] == 1 else "known failures",
        "skipped": "skipped",
    }
    for outcome, noun in nouns.items():
        if outcomes[outcome]:
            yield f"{outcomes[outcome]:,} {noun}"


def _overall(metrics: Content) -> str:
    overall = f"overall {score_text(metrics['overall_score'])}"
    broken = metrics["outcomes"]["error"]
    if broken and metrics["overall_score"] is not None:
        # The note keeps a broken run, which is scored without its errors, from looking like the best one.
        overall += f" of the {metrics['total_tests'] - broken:,} without errors"
    if metrics["partial"]:
        overall += " · partial run"
    return overall


def _layers(metrics: Content) -> Iterator[Block]:
    """Yield the layers by category, and the results of trials."""
    comparison = metrics.get("comparison")
    total = total_row(metrics, comparison)
    rows = [_layer_row(total)]
    if comparison:
        changes = [change(cell.change) for cell in total.cells.values()]
        rows.append(TableRow(("change", "", "", *changes)))
    rows += [_layer_row(row) for row in layer_rows(metrics, comparison)]
    heads = ("", "cases", "passed", *metrics["by_layer"])
    rows_of_all = len(rows) - len(metrics["by_category"])
    shown = rows_of_all + SHOWN_CATEGORIES
    yield FigureTable(heads, tuple(rows), what="categories: see report.html", most=shown)
    if not comparison and may_be_accepted(metrics):
        yield Line("no baseline to compare with yet: --rageval-update-baseline makes one")
    yield from trials_line(metrics)
    turns = turns_line(metrics)
    if turns is not None:
        yield turns


def may_be_accepted(metrics: Content) -> bool:
    """Return True if a run may be advised as the new baseline: one that fails the build never is."""
    is_failing = with_verdict(metrics)["verdict"].get("fails_build", False)
    return bool(metrics.get("can_be_baseline", not metrics["partial"])) and not is_failing


def _layer_row(row: LayerRow) -> TableRow:
    scores = [score_text(cell.score) for cell in row.cells.values()]
    return TableRow((row.name, f"{row.cases:,}", f"{row.passed:,}", *scores))


def trials_line(metrics: Content) -> Iterator[Line]:
    """Yield the pass rates over trials, if a case has several."""
    repeats = metrics.get("repeats")
    if repeats and repeats["cases"]:
        once = _share_text(repeats["pass_at_n"])
        always = _share_text(repeats["pass_hat_n"])
        words = f"{once} passed at least once, {always} every time"
        saved = repeats.get("saved_requests")
        if saved is not None:
            words += f"; {counted(saved, 'request')} saved, since the rule was decided"
        yield Line(f"{counted(repeats['trials'], 'trial')} a case: {words}")


def _share_text(share: float | None) -> str:
    # Where a case was decided before its last trial, the share may not be known.
    return NO_VALUE if share is None else f"{share:.0%}".replace("%", " %")


def _metrics(metrics: Content) -> Iterator[FigureTable]:
    """Yield every metric with its change and the cases behind its mean."""
    names: list[str] = []
    for layer in metrics["by_layer"].values():
        names += layer["metrics"]
    names += [name for name, metric in metrics["metrics"].items() if "unit" in metric]
    names += run_level_names(metrics)
    rows = []
    for name in dict.fromkeys(names):  # an amount may be of a layer with a score
        if metrics["metrics"][name]["mean"] is not None:
            figures = [text for _, text in metric_figures(name, metrics)]
            rows.append(TableRow((name, *figures)))
    yield FigureTable(("metric", "mean", "change", "scored"), tuple(rows))


def metric_figures(name: str, metrics: Content) -> Iterator[tuple[str, str]]:
    """Yield the figures of a metric of a run by their heads."""
    metric = metrics["metrics"][name]
    comparison = metrics.get("comparison") or {}
    compared = comparison.get("metrics", {}).get(name)
    unit = metric.get("unit")
    yield "mean", score_text(metric["mean"], unit)
    yield "change", shown_change(compared) if compared else NO_VALUE
    yield "scored", denominator(metric)


def gates_to_show(metrics: Content) -> Iterator[Line]:
    """Yield the run's failed gates, and warnings on passed ones."""
    for gate in metrics["gates"]:
        state = gate_state(gate, is_partial=metrics["partial"])
        if gate["passed"] is True and not is_warning(gate):
            continue
        # Of a failing gate the verdict says so.
        line = gate_line(gate, is_partial=metrics["partial"])
        if gate["passed"] is False and state.kind == "silent":
            line = f"{state.words}: {line}"
        yield Line(line, "worse" if state.kind == "fails" else "doubtful", "point")


def _gates(metrics: Content) -> Iterator[Block]:
    """Yield the run's failed gates and warnings, then in one line the gates that were not measured."""
    measured = [gate for gate in metrics["gates"] if gate["passed"] is not None]
    yield from gates_to_show({**metrics, "gates": measured})
    unmeasured = tuple(gate_name(gate) for gate in metrics["gates"] if gate["passed"] is None)
    if unmeasured:
        gates = counted(len(unmeasured), "gate was", "gates were")
        yield Line(f"{gates} not measured: {listed(unmeasured, SHOWN_NAMES)}", "doubtful")


def _ids(keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(key.partition("::")[2] for key in keys)


def _changed(metrics: Content) -> Iterator[NameList]:
    advice = " (tighten it with --rageval-update-baseline)" if may_be_accepted(metrics) else ""
    comparison = metrics.get("comparison") or {}
    for changed in cases_by_change(comparison, "the baseline", is_partial=metrics["partial"]):
        # A case that the baseline lacks is no change of the system; the verdict counts those of them that fail.
        if changed.name == "only_after":
            continue
        title = changed.title
        names = _ids(changed.keys)
        if changed.name == "flipped_to_pass":
            title += advice
        if changed.name == "fails_new_gate":
            names = _with_new_gates(changed.keys, comparison.get("new_gates", {}))
        yield NameList(f"{title}:", names, changed.tone)


def _with_new_gates(keys: Sequence[str], new_gates: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the ids of cases, each with the gates that did not fail before: `q3 (gold_in_answer)`."""
    named: list[str] = []
    for key, name in zip(keys, _ids(keys), strict=True):
        gates = ", ".join(new_gates.get(key, ()))
        named.append(f"{name} ({gates})" if gates else name)
    return tuple(named)


class ChangedCases(NamedTuple):
    """The cases that changed in one way against another run."""

    name: str
    """The way, as metrics.json names it."""
    title: str
    tone: Tone
    keys: list[str]


def cases_by_change(comparison: Content, other: str, *, is_partial: bool) -> Iterator[ChangedCases]:
    """Yield the cases that changed against another run, for each way that has some."""
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
        if name == "only_before" and is_partial:
            continue  # on a partial run the missing cases are expected
        cases = comparison.get(name)
        if cases:
            keys = [case if isinstance(case, str) else case["case_key"] for case in cases]
            if name == "only_before":
                renamed = {*renamed_of(comparison).values()}
                keys = [key for key in keys if key not in renamed]
            if keys:
                yield ChangedCases(name, title, tone, keys)


def run_notes(metrics: Content, rows: Sequence[Row] = ()) -> Iterator[Line]:
    """Yield what no gate examined, the judge and its cost. With `rows`, the notes name their cases."""
    confirmed = confirmed_line(metrics)
    if confirmed is not None:
        yield Line(confirmed)
    for line in flaky_lines(metrics):
        yield Line(f"flaky: {line}", "doubtful")
    yield from _ungated_notes(metrics, rows)
    yield from _abstention_notes(metrics, rows)
    judge = metrics.get("judge")
    if judge:
        kind = ""
        if judge["heuristic"]:
            kind = ", a heuristic without a model; its scores gate only where you wrote the gate"
        yield Line(f"judge: {judge['model']}{kind}")
    rewrites = rewrite_line(metrics)
    if rewrites is not None:
        yield rewrites
    yield from operation_lines(metrics)
    yield from map(Line, _judging(metrics["volatile"]["cost"], metrics["total_tests"]))


def _slowest(rows: Sequence[Row]) -> Iterator[Line]:
    timed = ((row.operations["latency_ms"], row.key) for row in rows if "latency_ms" in row.operations)
    # Equal times by key, so that equal runs print the same.
    slowest = heapq.nsmallest(SLOWEST, timed, key=lambda call: (-call[0], call[1]))
    if slowest:
        named = [f"{key.partition('::')[2]} {duration(milliseconds)}" for milliseconds, key in slowest]
        yield Line("slowest calls: " + ", ".join(named))


def _ungated_notes(metrics: Content, rows: Sequence[Row]) -> Iterator[Line]:
    """Yield how many cases no gate examined, or no gate of their gold."""
    number = metrics["without_gate"]
    if number:
        keys = [row.key for row in rows if row.lacks_gate]
        yield _note(f"{counted(number, 'case was', 'cases were')} examined by no gate", "gates", keys)
    number = metrics.get("gold_without_gate")
    if number:
        keys = [row.key for row in rows if row.has_ungated_gold and row.outcome == "passed"]
        yield _note(f"{counted(number, 'case')} passed though no gate looked at the gold", "gold", keys)
    number = metrics.get("facts_without_gate")
    if number:
        keys = [row.key for row in rows if row.has_ungated_facts]
        yield _note(f"{counted(number, 'case has', 'cases have')} key facts that no gate looks at", "facts", keys)
    number = metrics.get("answers_without_gate")
    if number:
        keys = [row.key for row in rows if row.has_ungated_answer]
        have = counted(number, "case has a gold answer", "cases have gold answers")
        text = f"{have} that no gate compares; a model as judge does, or the gate `token_recall >= 0.5`"
        yield _note(text, "answer", keys)


def _abstention_notes(metrics: Content, rows: Sequence[Row]) -> Iterator[Line]:
    """Yield what the wording of answers left open about abstentions."""
    undecided = metrics.get("undecided")
    if undecided:
        answers = counted(undecided, "answer neither answers nor declines", "answers neither answer nor decline")
        keys = [row.key for row in rows if row.is_undecided]
        yield _note(f"{answers} plainly: undecided, and no gate of abstention looked at them", "abstention", keys)
    for language, number in (metrics.get("untrained_languages") or {}).items():
        answers = counted(number, "answer is", "answers are")
        keys = [row.key for row in rows if row.untrained_language == language]
        yield _note(f"{answers} in {language}: abstentions were detected without training in it", "language", keys)


def _note(text: str, unchecked: str, keys: Iterable[str]) -> Line:
    """Return a note on cases: `1 undecided: q7 (filter unchecked:abstention)`; without names if they are not known."""
    ids = _ids(keys)
    named = f"{text}: {listed(ids, SHOWN_NAMES)}" if ids else text
    return Line(f"{named} (filter unchecked:{unchecked})", "doubtful")


def equal_errors(rows: Iterable[Row | ListedCase]) -> list[tuple[str, int]]:
    """Return the different messages of errors, each in a line, with their counts; the most frequent first."""
    broken = (row for row in rows if row.outcome == "error")
    messages = (row.message or row.error_kind or "error" for row in broken)
    return Counter(excerpt(message, LONGEST_ERROR) for message in messages).most_common()


def _judging(cost: Content, cases: int) -> Iterator[str]:
    """Yield the cost of judging over all trials and the savings of the cache; nothing if no model was asked."""
    cached = cost["judgements_cached"]
    tokens = cost["judge_total_tokens"]
    if not cached and not tokens:
        return
    parts = [f"{cached} of {counted(cost['judgements'], 'judgement')} from the cache"]
    requests = cost.get("judge_requests")
    if requests:
        parts.append(f"{counted(requests, 'request')} ({requests / cases:.2g} a case)")
    used = "tokens unknown" if tokens is None else counted(tokens, "token")
    cached_tokens = cost.get("judge_tokens_cached")
    if cached_tokens:
        used += f" ({cached_tokens:,} from the provider's cache)"
    parts.append(used)
    dollars = cost["judge_total_usd"]
    spent = "cost unknown" if dollars is None else f"${dollars:.4f} spent"
    if dollars:
        spent += f" (${dollars / cases:.4f} a case)"
    parts.append(spent)
    saved = cost["judge_saved_usd"]
    if saved:
        parts.append(f"${saved:.4f} saved")
    yield "judging: " + ", ".join(parts)
