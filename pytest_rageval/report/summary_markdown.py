"""summary.md: what was run, what came of it, layer by layer, why cases failed and what to look at first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.cases.notes.gold_places import unwinnable_line
from pytest_rageval.compare.gate_lines import evidence, gate_line
from pytest_rageval.compare.layer_table import LayerRow, layer_rows
from pytest_rageval.compare.verdict_sentence import SYMBOLS, with_verdict
from pytest_rageval.io.suggestions import listed
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.numbers import change, denominator, duration, score_text
from pytest_rageval.runs.config_diff import setting_text
from pytest_rageval.runs.disk.reader import run_level_names
from pytest_rageval.stats.intervals import share_interval
from pytest_rageval.text import counted, printable

SHOWN_CASES = 10
BUILT = {"index": "index_build", "retriever": "retriever", "answerer": "answerer"}
"""Versions of parts of the system, by what they are called in config.json."""
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


def summary_markdown(
    metrics: Mapping[str, Any], config: Mapping[str, Any], registry: Registry, previous: Mapping[str, Any] | None = None
) -> str:
    """The whole document. Texts of cases and systems never stand in it; names are escaped.

    `previous`: the comparison with the run before this one, in the form of that with the baseline.
    """
    metrics = with_verdict(metrics)
    parts = [
        *_head(metrics),
        *_labels(config),
        *_configuration(config),
        *_results(metrics),
        *_layers(metrics, registry),
        *_breakdown(metrics, "category"),
        *_breakdown(metrics, "difficulty"),
        *_breakdown(metrics, "answerable"),
        *_failures(metrics),
        *_against_baseline(metrics["comparison"]),
        *_against_previous(previous, metrics["comparison"]),
    ]
    return "\n".join(parts).rstrip() + "\n"


def escaped(text: object) -> str:
    """Text that Markdown shows as it is, on one line."""
    line = " ".join(printable(str(text)).split())
    line = re.sub(r"([\\`*_{}\[\]<>|#~!&])", r"\\\1", line)
    return _LIST_OR_RULE.sub(r"\g<before>\\\g<mark>", line)


_LIST_OR_RULE = re.compile(r"^(?P<before>\d{0,9})(?P<mark>[-+.)]|=+)(?=\s|$)")
"""What at the beginning of a line would begin a list, or make a heading of the line before."""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "| --- |" + " ---: |" * (len(head) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _head(metrics: Mapping[str, Any]) -> Iterator[str]:
    outcomes, verdict = metrics["outcomes"], metrics["verdict"]
    yield f"# Run {escaped(metrics['volatile']['run_id'])}"
    yield ""
    yield f"**{SYMBOLS[verdict['word']]} {escaped(verdict['sentence'])}**"
    yield ""
    for name, message in verdict["problems"].items():
        yield f"- {escaped(name)}: {escaped(message)}"
    if verdict["problems"]:
        yield ""
    if metrics["description"]:
        yield escaped(metrics["description"])
        yield ""
    if metrics["partial"]:
        yield "**Partial run**: not all cases ran, so gates of the run and regressions are shown and do not fail it."
        yield ""
    yield (
        f"{counted(metrics['total_tests'], 'case')}: {outcomes['passed']} passed{_share(metrics)}, "
        f"{outcomes['failed']} failed, {outcomes['error']} errors, {outcomes['xfailed']} known failures, "
        f"{outcomes['skipped']} skipped. "
        f"Overall score {score_text(metrics['overall_score'])}. "
        f"{counted(metrics['without_gate'], 'case was', 'cases were')} examined by no gate; "
        f"{metrics.get('gold_without_gate', 0)} passed though no gate looked at the gold."
    )
    yield ""
    if repeats := metrics.get("repeats"):
        yield (
            f"{counted(repeats['trials'], 'trial')} a case: {score_text(repeats['pass_at_n'])} of the cases passed at "
            f"least once, {score_text(repeats['pass_hat_n'])} every time."
        )
        yield ""
    yield from _judging(metrics)


def _share(metrics: Mapping[str, Any]) -> str:
    """The share of passed cases with its 95 % interval, in percent."""
    total = metrics["total_tests"]
    if not total:
        return ""
    passed = metrics["outcomes"]["passed"] / total
    interval = share_interval(passed, total)
    within = f", 95 % within {100 * interval[0]:.0f} to {100 * interval[1]:.0f} %" if interval else ""
    return f" ({100 * passed:.0f} %{within})"


def _judging(metrics: Mapping[str, Any]) -> Iterator[str]:
    judge, cost = metrics["judge"], metrics["volatile"]["cost"]
    if not judge:
        return
    kind = "a heuristic without a model" if judge["heuristic"] else "a model"
    tokens, dollars = cost["judge_total_tokens"], cost["judge_total_usd"]
    spent = f"; {counted(tokens, 'token')}" if tokens else ""
    spent += f", ${dollars:.4f}" if spent and dollars is not None else ", cost unknown" if spent else ""
    yield f"Judged by {escaped(judge['model'])}, {kind}{spent}."
    yield ""
    if reliability := metrics["aggregate_metrics"].get("judge_reliability"):
        rate, n = reliability["disagreement_rate"], reliability["spot_check_n"]
        yield f"In a spot check of {counted(n, 'judgement')}, a second judge disagreed with {score_text(rate)} of them."
        yield ""


def _labels(config: Mapping[str, Any]) -> Iterator[str]:
    """How many cases nobody can win, where a folder of notes is configured."""
    if (line := unwinnable_line(config)) is not None:
        yield f"**{escaped(line)}**"
        yield ""


def _configuration(config: Mapping[str, Any]) -> Iterator[str]:
    judge, weights = config["judge"] or {}, config["rerank_weights"]
    yield "## Configuration"
    yield ""
    rows = [
        ("target", config["target"]),
        *((f"version of {name}", version) for name, version in sorted(config.get("observed", {}).items()) if version),
        ("judge", _judge_name(judge) if judge else "none"),
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
    yield from _table(["", "value"], [[escaped(name), escaped(value)] for name, value in rows])


def _judge_name(judge: Mapping[str, Any]) -> str:
    """The configured judge, and the fixtures that gave one."""
    names = [judge["model"]] if "model" in judge else []
    return ", ".join([*names, *(f"fixture {place}" for place in judge.get("fixture", ()))])


def _results(metrics: Mapping[str, Any]) -> Iterator[str]:
    if not metrics["gates"]:
        return
    yield "## Gates of the run"
    yield ""
    verdicts = {True: "holds", False: "**fails**", None: "not measured"}
    yield from _table(
        ["gate", "verdict"], [[escaped(gate_line(gate)), verdicts[gate["passed"]]] for gate in metrics["gates"]]
    )


def _layers(metrics: Mapping[str, Any], registry: Registry) -> Iterator[str]:
    yield "## Metrics"
    yield ""
    yield "Means are over the cases to which a metric applies; *scored* says how many of how many."
    yield ""
    for layer, summary in metrics["by_layer"].items():
        title = layer if layer == summary["title"] else f"{layer} {summary['title']}"
        yield f"### {title}: {score_text(summary['score'])}"
        yield ""
        yield from _table(
            ["metric", "mean", "95 %", "change", "scored", "better", "meaning"],
            [_metric_row(name, metrics, registry) for name in summary["metrics"]],
        )
    yield "### Operations"
    yield ""
    yield from _table(
        ["metric", "value", "95 %", "change", "scored", "better", "meaning"],
        [_metric_row(name, metrics, registry) for name in run_level_names(metrics)],
    )
    latency = metrics["volatile"]["latency"]
    if latency["p50_ms"] is not None:
        yield (
            f"Latency of a question: median {duration(latency['p50_ms'])}, 95 % within {duration(latency['p95_ms'])}, "
            f"99 % within {duration(latency['p99_ms'])}, at {metrics['volatile']['concurrency']} in flight."
        )
        yield ""


def _metric_row(name: str, metrics: Mapping[str, Any], registry: Registry) -> list[str]:
    metric = metrics["metrics"][name]
    compared = (metrics["comparison"] or {}).get("metrics", {}).get(name)
    low, high = metric["scale"]
    meaning = registry[name.partition("@")[0]].doc.split("\n\n")[0] if name.partition("@")[0] in registry else ""
    return [
        f"`{name}`",
        score_text(metric["mean"]) + ("" if (low, high) == (0, 1) else f" of {high:g}"),
        "–" if metric["ci"] is None else f"{score_text(metric['ci'][0])} to {score_text(metric['ci'][1])}",
        change(compared["delta"] if compared else None),
        denominator(metric),
        metric["better"],
        escaped(meaning),
    ]


def _breakdown(metrics: Mapping[str, Any], name: str) -> Iterator[str]:
    rows = layer_rows(metrics, metrics.get("comparison"), name)
    if not rows:
        return
    yield f"## By {name}"
    yield ""
    outcomes = ("passed", "failed", "error", "xfailed", "skipped")
    yield from _table([name, "cases", *outcomes, *metrics["by_layer"]], [_breakdown_row(row, outcomes) for row in rows])


def _breakdown_row(row: LayerRow, outcomes: Sequence[str]) -> list[str]:
    scores = (score_text(cell.score) for cell in row.cells.values())
    return [escaped(row.name), str(row.cases), *(str(row.outcomes[outcome]) for outcome in outcomes), *scores]


def _failures(metrics: Mapping[str, Any]) -> Iterator[str]:
    tags = sorted(metrics["failure_tags"].items(), key=lambda item: (-len(item[1]), item[0]))
    if not tags:
        return
    yield "## Why cases failed"
    yield ""
    for tag, keys in tags:
        yield f"- **{escaped(tag)}** ({len(keys)}): {_listed(keys)}"
    yield ""
    yield "## What to look at first"
    yield ""
    for tag, keys in tags[:3]:
        advice = next((text for start, text in ADVICE.items() if tag.startswith(start)), "look at")
        yield f"- {advice[0].upper()}{advice[1:]} {_listed(keys[:3])}."
    yield ""


def _against_baseline(comparison: Mapping[str, Any] | None) -> Iterator[str]:
    yield "## Against the baseline"
    yield ""
    if comparison:
        yield from _compared(comparison, "the baseline")
    else:
        yield "There was no baseline. `pytest --rageval-update-baseline` makes this run the first one."
    yield ""


def _against_previous(previous: Mapping[str, Any] | None, baseline: Mapping[str, Any] | None) -> Iterator[str]:
    yield "## Against the previous run"
    yield ""
    if not previous:
        yield "There was no complete run before this one."
    elif baseline and baseline["baseline_run_id"] == previous["baseline_run_id"]:
        yield f"The previous run, {escaped(previous['baseline_run_id'])}, is the baseline."
    else:
        yield f"The previous complete run is {escaped(previous['baseline_run_id'])}."
        yield ""
        yield from _compared(previous, "the previous run")


def _compared(comparison: Mapping[str, Any], other: str) -> Iterator[str]:
    for problem in comparison["problems"]:
        yield f"**Not comparable as they are**: {escaped(problem)}."
        yield ""
    moved = {
        name: metric
        for name, metric in comparison["metrics"].items()
        if metric["verdict"] not in ("unchanged", "new", "incomparable")
    }
    if moved:
        yield from _table(
            ["metric", "before", "now", "change", "evidence", "verdict"],
            [[f"`{name}`", *_moved(metric)] for name, metric in moved.items()],
        )
    else:
        yield "No metric moved beyond its tolerance or significantly."
        yield ""
    titles = {
        "flipped_to_fail": "Fail now, did not before",
        "flipped_to_pass": "Pass now, failed before",
        "only_before": f"Only in {other}",
        "only_after": "Only in this run",
    }
    for name, title in titles.items():
        if comparison[name]:
            yield f"- {title} ({len(comparison[name])}): {_listed(comparison[name])}"
    if lost := comparison["unmeasured"]:
        listed = _listed([f"{case['case_key']} ({case['reason']})" for case in lost])
        yield f"- Have no score now, had one before ({len(lost)}): {listed}"


def _moved(metric: Mapping[str, Any]) -> list[str]:
    numbers = [score_text(metric["before"]), score_text(metric["after"]), change(metric["delta"])]
    return [*numbers, escaped(evidence(metric)), escaped(metric["verdict"])]


def _listed(keys: Sequence[str]) -> str:
    return listed([*map(escaped, keys)], SHOWN_CASES)
