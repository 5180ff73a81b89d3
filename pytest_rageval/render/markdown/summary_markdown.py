"""summary.md: the verdict, what fails now, what moved, then the figures layer by layer and what was configured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.cases.gold_places import unwinnable_line
from pytest_rageval.comparison.gate_lines import evidence, gate_line
from pytest_rageval.comparison.layer_table import LayerRow, layer_rows
from pytest_rageval.comparison.verdict_sentence import SYMBOLS, with_verdict
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.render.markdown.markdown_text import escaped, folded, table
from pytest_rageval.runs.config_diff import setting_text
from pytest_rageval.runs.judge_notes import failure_note
from pytest_rageval.runs.reader import run_level_names
from pytest_rageval.stats.intervals import share_interval
from pytest_rageval.text import change, counted, denominator, duration, score_text

BUILT = {"index": "index_build", "retriever": "retriever", "answerer": "answerer"}
"""Versions of parts of the system, by what they are called in config.json."""
QUIET = ("unchanged", "new", "incomparable")
Comparison = Mapping[str, Any]
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
    """The whole document. Texts of cases and systems never stand in it; names are escaped.

    `previous`: the comparison with the run before this one, in the form of that with the baseline.
    """
    metrics = with_verdict(metrics)
    parts = [
        *_head(metrics),
        *_labels(config),
        *failures(metrics),
        *beside_others(
            metrics["comparison"],
            previous,
            is_partial=metrics["partial"],
            can_be_baseline=metrics.get("can_be_baseline", True),
        ),
        *_results(metrics),
        *_layers(metrics, registry),
        *_breakdown(metrics, "category"),
        *_breakdown(metrics, "difficulty"),
        *_breakdown(metrics, "answerable"),
        *_configuration(config),
    ]
    return "\n".join(parts).rstrip() + "\n"


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
    if note := failure_note(metrics.get("judge_errors") or ()):
        yield f"**{escaped(note)}**"
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
    yield from table(["", "value"], [[escaped(name), escaped(value)] for name, value in rows])


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
    yield from table(
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
    yield from table([name, "cases", *outcomes, *metrics["by_layer"]], [_breakdown_row(row, outcomes) for row in rows])


def _breakdown_row(row: LayerRow, outcomes: Sequence[str]) -> list[str]:
    scores = (score_text(cell.score) for cell in row.cells.values())
    return [escaped(row.name), str(row.cases), *(str(row.outcomes[outcome]) for outcome in outcomes), *scores]


class Other(NamedTuple):
    """What the run is set beside: its name in the heads of the table, and in a sentence."""

    short: str
    name: str
    comparison: Comparison


def beside_others(
    baseline: Comparison | None, previous: Comparison | None, *, is_partial: bool, can_be_baseline: bool
) -> Iterator[str]:
    """`previous`: the comparison with the run before this one; left out where that is the baseline."""
    is_same = bool(baseline and previous and baseline["baseline_run_id"] == previous["baseline_run_id"])
    others = [Other("baseline", "the baseline", baseline)] if baseline else []
    if previous and not is_same:
        others.append(Other("previous", "the previous run", previous))
    yield "## Compared"
    yield ""
    yield _with_which(baseline, previous, is_same=is_same, can_be_baseline=can_be_baseline)
    yield ""
    for other in others:
        for problem in other.comparison["problems"]:
            yield f"**Not comparable with {other.name} as they are**: {escaped(problem)}."
            yield ""
    yield from _moved(others)
    for other in others:
        yield from _cases(other, is_partial=is_partial)


def _with_which(
    baseline: Comparison | None, previous: Comparison | None, *, is_same: bool, can_be_baseline: bool
) -> str:
    before = f"The previous complete run is {escaped(previous['baseline_run_id'])}" if previous else ""
    if is_same:
        return f"{before}; it is the baseline."
    if not baseline:
        advice = ": `pytest --rageval-update-baseline` makes this run the first one" if can_be_baseline else ""
        none = f"There was no baseline{advice}"
        return f"{none}. {before}." if before else f"{none}, and no complete run before this one."
    first = f"The baseline is {escaped(baseline['baseline_run_id'])}"
    return f"{first}. {before}." if before else f"{first}. There was no complete run before this one."


def _moved(others: list[Other]) -> Iterator[str]:
    """The metrics that moved against one of them: before, change and verdict of each, side by side."""
    names = dict.fromkeys(name for other in others for name in other.comparison["metrics"] if _has_moved(name, other))
    if not names:
        if others:
            yield "No metric moved beyond its tolerance or significantly."
            yield ""
        return
    heads = [f"{other.short}: {head}" for other in others for head in ("before", "change", "evidence", "verdict")]
    yield from table(["metric", "now", *heads], [_row(name, others) for name in names])


def _has_moved(name: str, other: Other) -> bool:
    return other.comparison["metrics"][name]["verdict"] not in QUIET


def _row(name: str, others: list[Other]) -> list[str]:
    metrics = [other.comparison["metrics"].get(name) for other in others]
    now = next((metric["after"] for metric in metrics if metric is not None and metric["after"] is not None), None)
    return [f"`{name}`", score_text(now), *(cell for metric in metrics for cell in _cells(metric))]


def _cells(metric: Mapping[str, Any] | None) -> list[str]:
    if metric is None:
        return ["–", "–", "", "not there"]
    numbers = [score_text(metric["before"]), change(metric["delta"])]
    return [*numbers, escaped(evidence(metric)), escaped(metric["verdict"])]


def _cases(other: Other, *, is_partial: bool) -> Iterator[str]:
    """What became of cases. Those that newly fail against the baseline stand above, among what fails now."""
    comparison, place = other.comparison, "metrics.json"
    titles = {
        "flipped_to_fail": f"Fail now, did not in {other.name}",
        "flipped_to_pass": f"Pass now, failed in {other.name}",
        "not_measured": f"Failed in {other.name} by gates that were not measured now",
        "newly_gated": f"Fail gates that {other.name} did not measure",
        "only_before": f"Only in {other.name}",
        "only_after": f"Not in {other.name}",
        "changed_cases": f"Another case than in {other.name}, compared with nothing",
    }
    if other.short == "baseline":
        del titles["flipped_to_fail"]
    if is_partial:  # the other cases are no news
        del titles["only_before"]
    listed = {title: comparison[name] for name, title in titles.items() if comparison[name]}
    lines = [line for title, keys in listed.items() for line in folded(title, keys, place)]
    if lost := comparison["unmeasured"]:
        cases = [f"{case['case_key']} ({case['reason']})" for case in lost]
        lines += folded(f"Have no score now, had one in {other.name}", cases, place)
    yield from lines
    yield from [""] * bool(lines)


def failures(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Nothing where nothing fails."""
    tags = sorted(metrics["failure_tags"].items(), key=lambda item: (-len(item[1]), item[0]))
    new = (metrics.get("comparison") or {}).get("flipped_to_fail", [])
    gates = [gate for gate in metrics["gates"] if gate["passed"] is False]
    errors = metrics["outcomes"]["error"]
    if not (tags or new or gates or errors):
        return
    yield "## What fails now"
    yield ""
    yield from (f"- gate of the run: {escaped(gate_line(gate))}" for gate in gates)
    if errors:
        yield f"- {'1 case ends in an error' if errors == 1 else f'{errors:,} cases end in errors'}: see run.log"
    if new:
        yield from folded("**Fail now, did not in the baseline**", new, PLACE)
    for tag, keys in tags:
        yield from folded(f"**{escaped(tag)}**", keys, PLACE)
    yield ""
    yield from _advice(tags)


def _advice(tags: list[tuple[str, list[str]]]) -> Iterator[str]:
    if not tags:
        return
    yield "What to look at first:"
    yield ""
    for tag, keys in tags[:3]:
        advice = next((text for start, text in ADVICE.items() if tag.startswith(start)), "look at")
        yield f"- {advice[0].upper()}{advice[1:]} {', '.join(map(escaped, keys[:3]))}."
    yield ""
