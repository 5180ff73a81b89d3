"""summary.md: verdict, changes, causes, ten cases, layers, moved metrics, advice and configuration, in 90 lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.cases.gold_places import unwinnable_line
from pytest_rageval.comparison.gate_lines import gate_line, gate_state
from pytest_rageval.comparison.layer_table import total_row
from pytest_rageval.comparison.verdict_reasons import shown_problems
from pytest_rageval.comparison.verdict_sentence import SYMBOLS
from pytest_rageval.io.suggestions import and_more, listed
from pytest_rageval.render.markdown.markdown_text import TO_THE_LEFT, as_code, bounded, table
from pytest_rageval.render.markdown.recommendations import recommendations
from pytest_rageval.runs.config_diff import setting_text
from pytest_rageval.runs.judge_notes import failure_note
from pytest_rageval.stats.intervals import share_interval
from pytest_rageval.text import NO_VALUE, case_count, change, counted, dollars_text, duration, score_text
from pytest_rageval.views.causes import CauseView
from pytest_rageval.views.compared_metrics import ComparedMetric, fallen_lines
from pytest_rageval.views.operations import slower_line
from pytest_rageval.views.parts import Line
from pytest_rageval.views.run import cases_by_change, run_notes, trials_line
from pytest_rageval.views.run_digest import FailingCase, RunDigest, moved_against
from pytest_rageval.views.turns import turns_table

Content = Mapping[str, Any]
BUILT = {"index": "index_build", "retriever": "retriever", "answerer": "answerer"}
"""Parts of the system, with the stems of their version keys in config.json."""
BASELINE = "the baseline"
PARTIAL = "Partial run: not all cases ran, so gates of the run and regressions are shown and do not fail it."
SHOWN_NOTES = 5
SHOWN_GATES = 3
"""Problems and failed gates of the run."""
SHOWN_CAUSES = 5
"""Causes, metrics that fell together, and lists of changed cases."""
SHOWN_CHANGES = 4
SHOWN_TURNS = 6
LINES = 90
"""Nobody reads 724 lines to decide about a merge, as many as 135 broken cases had without a limit."""
FEWEST_METRICS = 6
LINES_AROUND_METRICS = 8
"""Title, sentence, head and end of the table of metrics."""
SHOWN_NAMES = 3
CASE_HEADS = ("case", "why", "question", "expected", "answer")
CASE_TEXT = 200
"""Characters of each text of a case."""


def summary_markdown(digest: RunDigest, config: Content, previous: Content | None, *, has_page: bool) -> str:
    """Return the whole document, of at most 90 lines.

    previous  the comparison with the last complete run before this one
    has_page  whether the run has a report.html
    """
    metrics = digest.metrics
    before = [
        _section(f"# Run {bounded(str(metrics['volatile']['run_id']), 120)}", _head(metrics, config)),
        _section("## Slower answers", slower_line(metrics["volatile"].get("slower_answers"))),
        _section("## What changed", _points(map(_code, digest.changes), SHOWN_CHANGES)),
        _section("## Why cases fail", _reasons(digest)),
        _section("## What to do", [f"- {text}" for text in recommendations(digest)]),
        _section("## Failing cases", _cases(digest)),
        _section("## Layers", _layers(metrics)),
        _section("## Turns", _turns(metrics)),
    ]
    after = [
        _section("## Configuration", _configuration(config, metrics)),
        _section("## More", [_links(metrics, has_page=has_page)]),
    ]
    taken = sum(len(section) for section in (*before, *after))
    # The other sections are limited each; this one takes what they leave.
    most_metrics = max(FEWEST_METRICS, LINES - taken - LINES_AROUND_METRICS)
    moved = _section("## Moved metrics", _moved(digest, previous, most_metrics))
    lines = [line for section in (*before, moved, *after) for line in section]
    return "\n".join(lines).rstrip() + "\n"


def _section(title: str, lines: Iterable[str]) -> list[str]:
    """Return the lines of a section and an empty one; none if it holds nothing."""
    text = "\n".join(lines).rstrip()
    return [title, *text.split("\n"), ""] if text else []


def _reasons(digest: RunDigest) -> Iterator[str]:
    """Yield what fails the run as a whole, then why its cases fail."""
    yield from _points(_of_the_run(digest.metrics), SHOWN_GATES)
    yield from _points(_causes(digest), SHOWN_CAUSES)


def _points(texts: Iterable[str], most: int) -> Iterator[str]:
    """Yield the first texts as points of a list, and the number of the others."""
    points = [f"- {text}" for text in texts]
    yield from points[:most]
    if len(points) > most:
        yield f"- {and_more(len(points) - most)}"


def _code(change_line: str) -> str:
    return bounded(change_line, 200, as_code)


# ── the first section ─────────────────────────────────────────────────────────────────────────────────────────


def _head(metrics: Content, config: Content) -> Iterator[str]:
    verdict = metrics["verdict"]
    yield f"**{SYMBOLS[verdict['tone']]} {bounded(verdict['sentence'], 1500)}**"
    yield ""
    if metrics["description"]:
        yield bounded(metrics["description"], 1000)
        yield ""
    yield _outcomes_text(metrics)
    yield ""
    notes = [bounded(note.text, 400) for note in _notes(metrics, config)]
    yield from _points(notes, SHOWN_NOTES)


def _outcomes_text(metrics: Content) -> str:
    outcomes = metrics["outcomes"]
    counts = (
        f"{outcomes['passed']:,} passed{_share(metrics)}",
        f"{outcomes['failed']:,} failed",
        f"{outcomes['error']:,} errors",
        f"{outcomes['xfailed']:,} known failures",
        f"{outcomes['skipped']:,} skipped",
    )
    overall = f"Overall score {score_text(metrics['overall_score'])}."
    return f"{case_count(metrics)}: {', '.join(counts)}. {overall}"


def _share(metrics: Content) -> str:
    """Return the share of passed cases with its 95 % interval, in percent."""
    total = metrics["total_tests"]
    if not total:
        return ""
    passed = metrics["outcomes"]["passed"] / total
    conversations = metrics.get("conversations")
    interval = share_interval(passed, total)
    if conversations is not None:
        # The turns of a conversation depend on each other. A run of an older version has no such interval.
        interval = conversations.get("pass_rate_ci")
    within = ""
    if interval:
        low, high = interval
        within = f", 95 % within {100 * low:.0f} to {100 * high:.0f} %"
    return f" ({100 * passed:.0f} %{within})"


def _notes(metrics: Content, config: Content) -> Iterator[Line]:
    """Yield what a reader must know of the figures, the most important first."""
    if metrics["partial"]:
        yield Line(PARTIAL)
    failed_judgements = failure_note(metrics.get("judge_errors") or ())
    if failed_judgements:
        yield Line(failed_judgements)
    unwinnable = unwinnable_line(config)
    if unwinnable is not None:
        yield Line(unwinnable)
    unmeasured = sum(gate["passed"] is None for gate in metrics["gates"])
    if unmeasured:
        yield Line(counted(unmeasured, "gate of the run was", "gates of the run were") + " not measured")
    yield from trials_line(metrics)
    reliability = metrics["aggregate_metrics"].get("judge_reliability")
    if reliability:
        judgements = counted(reliability["spot_check_n"], "judgement")
        rate = score_text(reliability["disagreement_rate"])
        yield Line(f"In a spot check of {judgements}, a second judge disagreed with {rate} of them.")
    yield from run_notes(metrics)
    yield from _operations(metrics["volatile"])


def _operations(volatile: Content) -> Iterator[Line]:
    """Yield the latency of a question, and what the system used; nothing of what is not known."""
    operations = volatile.get("operations") or {}
    latency = operations.get("latency_ms")
    if latency is not None:
        parts = [f"median {duration(latency['p50'])}"]
        if latency["p95"] is not None:
            parts.append(f"95 % within {duration(latency['p95'])}")
        first = operations.get("ttft_ms")
        if first is not None:
            parts.append(f"first token after {duration(first['p50'])} (median)")
        yield Line(f"Latency of a question: {', '.join(parts)}, at {volatile['concurrency']} in flight.")
    used = []
    for name, words in (("input_tokens", "input tokens"), ("output_tokens", "output tokens")):
        if name in operations:
            used.append(f"{operations[name]['total']:,.0f} {words}")
    cost = operations.get("cost_usd")
    if cost is not None:
        used.append(f"{dollars_text(cost['total'])} ({dollars_text(cost['mean'])} an answer)")
    if used:
        yield Line(f"The system used {', '.join(used)}.")


# ── why cases fail ──────────────────────────────────────────────────────────────────────────────────────────────


def _of_the_run(metrics: Content) -> Iterator[str]:
    """Yield the problems and gates that fail the run as a whole."""
    for name, message in shown_problems(metrics).items():
        yield f"❌ {bounded(f'{name}: {message}', 600)}"
    for gate in metrics["gates"]:
        state = gate_state(gate, is_partial=metrics["partial"])
        line = gate_line(gate, is_partial=metrics["partial"])
        if state.kind == "fails":
            yield f"❌ {bounded(line, 400)}"
        elif gate["passed"] is False:
            yield bounded(f"{state.words}: {line}", 400)


def _causes(digest: RunDigest) -> Iterator[str]:
    """Yield the causes of failing cases, and the cases that newly fail."""
    metrics = digest.metrics
    yield from map(_cause_text, digest.causes)
    for cause in digest.known_causes:
        yield f"known failures: {_cause_text(cause)}"
    comparison = metrics["comparison"]
    for changed in cases_by_change(comparison or {}, BASELINE, is_partial=metrics["partial"]):
        if changed.tone == "worse":
            yield f"{changed.title} ({len(changed.keys):,}): {_names(changed.keys)}"
    if comparison and comparison["compared"]:
        yield from (bounded(line, 400) for line in fallen_lines(comparison))


def _cause_text(cause: CauseView) -> str:
    return f"**{bounded(cause.title, 300)}**: {_names(cause.keys)}"


def _names(keys: Sequence[str]) -> str:
    return bounded(listed(keys, SHOWN_NAMES), 400)


def _cases(digest: RunDigest) -> Iterator[str]:
    """Yield the table of the first failing cases, one on each line."""
    if not digest.cases:
        return
    rows = [_case_cells(case) for case in digest.cases]
    yield from table(CASE_HEADS, rows, figures=TO_THE_LEFT)
    rest = len(digest.failing) - len(digest.cases)
    if rest:
        yield f"and {counted(rest, 'more case')}"


def _case_cells(failing: FailingCase) -> list[str]:
    case = failing.case
    why = "; ".join(filter(None, (failing.state, failing.cause, case.why)))
    texts = [case.question, failing.expected, case.answer]
    shown = [bounded(text, CASE_TEXT, as_code) if text else NO_VALUE for text in texts]
    return [bounded(case.key, 120), bounded(why, 300), *shown]


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────


def _layers(metrics: Content) -> Iterator[str]:
    """Yield the layers with their changes over what both runs share."""
    comparison = metrics["comparison"]
    compared = (comparison or {}).get("layers", {})
    rows = []
    for layer, cell in total_row(metrics, comparison).cells.items():
        title = metrics["by_layer"][layer]["title"]
        name = layer if layer == title else f"{layer} {title}"
        moved = change(cell.change)
        why = compared.get(layer, {}).get("why")
        if why:
            moved += f" ({bounded(why, 120)})"
        rows.append([bounded(name, 80), score_text(cell.score), moved])
    if rows:
        yield from table(("layer", "score", "change"), rows)


def _turns(metrics: Content) -> Iterator[str]:
    """Yield the figures by number of the turn, and how far later turns fall behind."""
    turns = turns_table(metrics)
    if turns is None:
        return
    rows = [[bounded(cell, 80) for cell in row.cells] for row in turns.rows[:SHOWN_TURNS]]
    yield from table(("turn", *turns.heads[1:]), rows)
    if len(turns.rows) > SHOWN_TURNS:
        yield f"and {counted(len(turns.rows) - SHOWN_TURNS, 'more turn')}"


def _moved(digest: RunDigest, previous: Content | None, most: int) -> Iterator[str]:
    """Yield the metrics that moved against the baseline or the previous complete run, in one table."""
    baseline: Content | None = digest.metrics["comparison"]
    is_same = bool(baseline and previous and baseline["baseline_run_id"] == previous["baseline_run_id"])
    yield f"{_compared_runs(baseline, previous, is_same=is_same)} {_refused(baseline)}".rstrip()
    sides = {"baseline": list(digest.moved)}
    # Two equal columns would say one thing twice.
    if not is_same:
        sides["previous run"] = moved_against(previous)
    sides = {name: moved for name, moved in sides.items() if moved}
    if not sides:
        return
    yield ""
    heads = ["metric", "now"]
    for name in sides:
        heads += [name, "change", "verdict"]
    labels = dict.fromkeys(metric.label for moved in sides.values() for metric in moved)
    rows = [_metric_cells(label, sides) for label in list(labels)[:most]]
    yield from table(heads, rows)
    if len(labels) > most:
        yield f"and {counted(len(labels) - most, 'more metric')}"


def _metric_cells(label: str, sides: Mapping[str, Sequence[ComparedMetric]]) -> list[str]:
    now = NO_VALUE
    cells = []
    for moved in sides.values():
        metric = next((metric for metric in moved if metric.label == label), None)
        if metric is None:
            cells += [NO_VALUE] * 3
            continue
        now = metric.figures["after"]
        cells += [metric.figures["before"], metric.figures["change"], metric.verdict]
    return [bounded(label, 120), now, *cells]


def _compared_runs(baseline: Content | None, previous: Content | None, *, is_same: bool) -> str:
    """Name the baseline and the previous run, as far as there are any."""
    before = f"The previous complete run is {bounded(str(previous['baseline_run_id']), 120)}" if previous else ""
    if is_same:
        return f"{before}; it is the baseline."
    if baseline:
        run_id = bounded(str(baseline["baseline_run_id"]), 120)
        return f"The baseline is {run_id}. {before or 'There was no complete run before this one'}."
    if before:
        return f"There was no baseline. {before}."
    return "There was no baseline, and no complete run before this one."


def _refused(baseline: Content | None) -> str:
    if not baseline or baseline["compared"]:
        return ""
    return f"Not comparable with the baseline: {bounded('; '.join(baseline['problems']), 400)}."


# ── configuration and links ───────────────────────────────────────────────────────────────────────────────────


def _configuration(config: Content, metrics: Content) -> Iterator[str]:
    """Yield a line for each group of settings."""
    for name, settings in _settings(config, metrics).items():
        shown = [f"{label} {value}".lstrip() for label, value in settings]
        yield f"- {name}: {bounded(', '.join(shown), 1000)}"


def _settings(config: Content, metrics: Content) -> Mapping[str, list[tuple[str, object]]]:
    observed = config.get("observed", {})
    weights = config["rerank_weights"]
    params = ", ".join(f"{name}={value}" for name, value in config["params"].items())
    system: list[tuple[str, object]] = [("", config["target"])]
    system += [(name, version) for name, version in sorted(observed.items()) if version]
    retrieval: list[tuple[str, object]] = [
        ("k", config["k"]),
        ("folder mode", config["folder_mode"]),
        ("weight of vector scores", weights["vector"]),
        ("weight of lexical scores", weights["lexical"]),
    ]
    versions: list[tuple[str, object]] = [("dataset", setting_text(config["dataset_version"]))]
    versions += [(part, setting_text(config.get(f"{stem}_version"))) for part, stem in BUILT.items()]
    versions.append(("configuration", config["config_hash"][:16]))
    return {
        "system": system,
        "retrieval": retrieval,
        "parameters": [("", params or "server default")],
        "versions": versions,
        "judge": _judge_settings(config, metrics),
    }


def _judge_settings(config: Content, metrics: Content) -> list[tuple[str, object]]:
    judge = config["judge"] or {}
    judges = [f"fixture {place}" for place in judge.get("fixture", ())]
    if judge.get("model"):
        judges.insert(0, judge["model"])
    name = ", ".join(judges) or "none"
    if (metrics.get("judge") or {}).get("heuristic"):
        name += " (a heuristic without a model)"
    settings: list[tuple[str, object]] = [("", name)]
    if judge.get("temperature") is not None:
        settings.append(("temperature", judge["temperature"]))
    if judge:
        settings += [(f"prompt of {name}", version) for name, version in config["rubrics"].items()]
    return settings


def _links(metrics: Content, *, has_page: bool) -> str:
    links = ["[report.html](report.html)"] if has_page else []
    links.append("[metrics.json](metrics.json): every metric, breakdowns by category, interval and case")
    run_id = as_code(f"rageval explain {metrics['volatile']['run_id']} CASE", 200)
    return " · ".join([*links, f"{run_id} shows one case"])
