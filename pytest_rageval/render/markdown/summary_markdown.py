"""summary.md: the verdict, present failures, what moved, the figures layer by layer, and the configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pytest_rageval.cases.gold_places import unwinnable_line
from pytest_rageval.comparison.gate_lines import gate_line
from pytest_rageval.comparison.layer_table import layer_rows
from pytest_rageval.comparison.verdict_sentence import SYMBOLS
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.model.case_fields import PROMINENT_NAMES
from pytest_rageval.render.markdown.markdown_text import escaped, folded, table, without_gaps
from pytest_rageval.render.markdown.view_markdown import block_lines
from pytest_rageval.runs.config_diff import setting_text
from pytest_rageval.runs.judge_notes import failure_note
from pytest_rageval.runs.reader import run_level_names
from pytest_rageval.stats.intervals import share_interval
from pytest_rageval.text import NO_VALUE, counted, duration, score_text
from pytest_rageval.views.comparison import gate_point, metrics_section
from pytest_rageval.views.parts import Block, Line, NameList
from pytest_rageval.views.run import cases_by_change, metric_figures, run_notes, trials_line

BUILT = {"index": "index_build", "retriever": "retriever", "answerer": "answerer"}
"""Parts of the system, with the stems of their version keys in config.json."""
BASELINE = "the baseline"
PARTIAL = "Partial run: not all cases ran, so gates of the run and regressions are shown and do not fail it."
ADVICE = {
    "L1_": "the system misreads questions: look at entity linking and concept mapping in the traces of",
    "L2_doc_retrieval_fail": "the right passages do not come: look at chunking, k and the query of",
    "L2_multi_hop_fail": "not all passages of a multi-hop question come: try a larger k, or split the question, for",
    "L2_specificity_fail": "look-alikes come instead: look at the ranking of",
    "L2_negative_fail": "something comes where nothing should: raise the retrieval threshold; see",
    "L2_recency_fail": "the older of two conflicting sources is cited, or the conflict hidden: look at dates for",
    "L3_": "the graph gives the wrong entities or edges: look at the graph and its query for",
    "L4_": "inferences break the ontology: look at the traces of",
    "L5_wrong_answer": "answers differ from the reference: read answer and reference of",
    "L5_": "the judge finds answers wanting: read the judgements of",
    "abstention_fail": "the system answers what its documents do not hold: raise the abstention threshold; see",
    "over_abstention_fail": "the system refuses what it could answer: lower the abstention threshold; see",
}
PLACE = "metrics.json names all"


def summary_markdown(
    metrics: Mapping[str, Any], config: Mapping[str, Any], registry: Registry, previous: Mapping[str, Any] | None = None
) -> str:
    """Return the whole document. It holds no texts of cases or systems; names are escaped.

    `previous`: the comparison with the run before this one, in the same form as that with the baseline.
    """
    sections = {
        f"# Run {escaped(metrics['volatile']['run_id'])}": _shown(_head(metrics, config)),
        "## What fails now": _shown(_failures(metrics)),
        "## Compared": _shown(_compared(metrics, previous)),
        "## Gates of the run": _shown(map(gate_point, metrics["gates"])),
        "## Metrics": _layers(metrics, registry),
        **{f"## By {name}": _breakdown(metrics, name) for name in (*PROMINENT_NAMES, "answerable")},
        "## Configuration": _configuration(config),
    }
    filled = {title: text for title, lines in sections.items() if (text := "\n".join(lines))}
    return without_gaps("\n\n".join(f"{title}\n\n{text}" for title, text in filled.items())).rstrip() + "\n"


def _shown(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, NameList):
            yield from folded(escaped(block.title), block.names, PLACE)
        else:
            yield from block_lines(block)


def _head(metrics: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[Line]:
    outcomes, verdict = metrics["outcomes"], metrics["verdict"]
    yield Line(f"{SYMBOLS[verdict['word']]} {verdict['sentence']}", "strong")
    yield from (Line(f"{name}: {message}", "worse", "point") for name, message in verdict["problems"].items())
    if metrics["description"]:
        yield Line(metrics["description"])
    if metrics["partial"]:
        yield Line(PARTIAL, "doubtful")
    yield Line(
        f"{counted(metrics['total_tests'], 'case')}: {outcomes['passed']} passed{_share(metrics)}, "
        f"{outcomes['failed']} failed, {outcomes['error']} errors, {outcomes['xfailed']} known failures, "
        f"{outcomes['skipped']} skipped. Overall score {score_text(metrics['overall_score'])}."
    )
    yield from trials_line(metrics)
    yield from run_notes(metrics)
    if note := failure_note(metrics.get("judge_errors") or ()):
        yield Line(note, "doubtful")
    if reliability := metrics["aggregate_metrics"].get("judge_reliability"):
        rate, n = reliability["disagreement_rate"], reliability["spot_check_n"]
        spot_check = f"In a spot check of {counted(n, 'judgement')}"
        yield Line(f"{spot_check}, a second judge disagreed with {score_text(rate)} of them.")
    if (line := unwinnable_line(config)) is not None:
        yield Line(line, "doubtful")


def _share(metrics: Mapping[str, Any]) -> str:
    """Return the share of passed cases with its 95 % interval, in percent."""
    total = metrics["total_tests"]
    if not total:
        return ""
    passed = metrics["outcomes"]["passed"] / total
    interval = share_interval(passed, total)
    within = f", 95 % within {100 * interval[0]:.0f} to {100 * interval[1]:.0f} %" if interval else ""
    return f" ({100 * passed:.0f} %{within})"


def _failures(metrics: Mapping[str, Any]) -> Iterator[Block]:
    failed = (gate for gate in metrics["gates"] if gate["passed"] is False)
    yield from (Line(gate_line(gate), "worse", "point") for gate in failed)
    if errors := metrics["outcomes"]["error"]:
        ending = "1 case ends in an error" if errors == 1 else f"{errors:,} cases end in errors"
        yield Line(f"{ending}: see run.log", "worse", "point")
    changed = cases_by_change(metrics["comparison"] or {}, BASELINE, is_partial=metrics["partial"])
    yield from (NameList(title, tuple(keys)) for title, tone, keys in changed if tone == "worse")
    tags = sorted(metrics["failure_tags"].items(), key=lambda item: (-len(item[1]), item[0]))
    yield from (NameList(tag, tuple(keys)) for tag, keys in tags)
    if tags:
        yield Line("What to look at first:")
    for tag, keys in tags[:3]:
        advice = next((text for start, text in ADVICE.items() if tag.startswith(start)), "look at")
        yield Line(f"{advice[0].upper()}{advice[1:]} {', '.join(keys[:3])}.", "doubtful", "point")


def _compared(metrics: Mapping[str, Any], previous: Mapping[str, Any] | None) -> Iterator[Block]:
    """Yield the comparisons with the baseline and with `previous`, the run before, unless that is the baseline."""
    baseline: Mapping[str, Any] | None = metrics["comparison"]
    is_same = bool(baseline and previous and baseline["baseline_run_id"] == previous["baseline_run_id"])
    before = f"The previous complete run is {previous['baseline_run_id']}" if previous else ""
    if is_same:
        yield Line(f"{before}; it is the baseline.")
    elif baseline:
        yield Line(
            f"The baseline is {baseline['baseline_run_id']}. {before or 'There was no complete run before this one'}."
        )
    else:
        advice = ": pytest --rageval-update-baseline makes this run the first one" * metrics["can_be_baseline"]
        yield Line(
            f"There was no baseline{advice}{f'. {before}' if before else ', and no complete run before this one'}."
        )
    for other, comparison in ((BASELINE, baseline), ("the previous run", None if is_same else previous)):
        if comparison:
            yield Line(f"Against {other}:", "strong")
            problems = comparison["problems"]
            yield from (Line(f"not comparable: {problem}", "worse", "remark") for problem in problems)
            yield from metrics_section(comparison) if comparison["compared"] else ()
            # Cases that newly fail against the baseline are listed above, with all that fails now.
            changed = cases_by_change(comparison, other, is_partial=metrics["partial"])
            for title, tone, keys in changed:
                if (other, tone) != (BASELINE, "worse"):
                    yield NameList(title, tuple(keys))


def _layers(metrics: Mapping[str, Any], registry: Registry) -> Iterator[str]:
    yield "Means are over the cases to which a metric applies; *scored* says how many of how many."
    yield ""
    for layer, summary in metrics["by_layer"].items():
        title = layer if layer == summary["title"] else f"{layer} {summary['title']}"
        yield f"### {title}: {score_text(summary['score'])}"
        yield ""
        yield from table(
            ["metric", "mean", "95 %", "change", "scored", "better", "meaning"],
            [_metric_row(name, metrics, registry) for name in summary["metrics"]],
        )
    yield "### Operations"
    yield ""
    yield from table(
        ["metric", "value", "95 %", "change", "scored", "better", "meaning"],
        [_metric_row(name, metrics, registry) for name in run_level_names(metrics)],
    )
    latency = metrics["volatile"]["latency"]
    if latency["p50_ms"] is not None:
        yield (
            f"Latency of a question: median {duration(latency['p50_ms'])}, 95 % within {duration(latency['p95_ms'])}, "
            f"99 % within {duration(latency['p99_ms'])}, at {metrics['volatile']['concurrency']} in flight."
        )
        if waited := latency.get("retry_wait_ms"):
            yield f"Requests that were repeated waited {duration(waited)} in all, which is no part of it."
        yield ""


def _metric_row(name: str, metrics: Mapping[str, Any], registry: Registry) -> list[str]:
    metric, bare = metrics["metrics"][name], name.partition("@")[0]
    mean, moved, scored = (text for _, text in metric_figures(name, metrics))
    low, high = metric["scale"]
    scale = "" if (low, high) == (0, 1) else f" of {high:g}"
    interval = NO_VALUE if metric["ci"] is None else " to ".join(map(score_text, metric["ci"]))
    meaning = registry[bare].doc.split("\n\n")[0] if bare in registry else ""
    return [f"`{name}`", mean + scale, interval, moved, scored, metric["better"], escaped(meaning)]


def _breakdown(metrics: Mapping[str, Any], name: str) -> Iterator[str]:
    rows = layer_rows(metrics, metrics.get("comparison"), name)
    outcomes = ("passed", "failed", "error", "xfailed", "skipped")
    cells = [
        [
            *(escaped(row.name), str(row.cases), *(str(row.outcomes[outcome]) for outcome in outcomes)),
            *(score_text(cell.score) for cell in row.cells.values()),
        ]
        for row in rows
    ]
    yield from table([name, "cases", *outcomes, *metrics["by_layer"]], cells) if rows else ()


def _configuration(config: Mapping[str, Any]) -> Iterator[str]:
    judge, weights = config["judge"] or {}, config["rerank_weights"]
    judges = [*filter(None, [judge.get("model")]), *(f"fixture {place}" for place in judge.get("fixture", ()))]
    rows = [
        ("target", config["target"]),
        *((f"version of {name}", version) for name, version in sorted(config.get("observed", {}).items()) if version),
        ("judge", ", ".join(judges) or "none"),
        *([("temperature of the judge", judge["temperature"])] if judge.get("temperature") is not None else []),
        *([(f"prompt of {name}", version) for name, version in config["rubrics"].items()] if judge else []),
        ("k", config["k"]),
        ("folder mode", config["folder_mode"]),
        ("weight of vector scores", weights["vector"]),
        ("weight of lexical scores", weights["lexical"]),
        ("parameters", ", ".join(f"{name}={value}" for name, value in config["params"].items()) or "server default"),
        ("dataset", config["dataset_version"]),
        *((f"{part} version", setting_text(config.get(f"{key}_version"))) for part, key in BUILT.items()),
        ("configuration hash", config["config_hash"][:16]),
    ]
    yield from table(["", "value"], [[escaped(name), escaped(value)] for name, value in rows])
