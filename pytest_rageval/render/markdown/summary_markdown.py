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
from pytest_rageval.views.compared_metrics import metrics_section
from pytest_rageval.views.comparison import gate_point
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
METRIC_HEADS = ("95 %", "change", "scored", "better", "meaning")
"""The heads of a table of metrics after the name and the mean."""
OUTCOMES = ("passed", "failed", "error", "xfailed", "skipped")


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
    parts = []
    for title, lines in sections.items():
        text = "\n".join(lines)
        if text:
            parts.append(f"{title}\n\n{text}")
    return without_gaps("\n\n".join(parts)).rstrip() + "\n"


def _shown(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, NameList):
            yield from folded(escaped(block.title), block.names, PLACE)
        else:
            yield from block_lines(block)


def _head(metrics: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[Line]:
    verdict = metrics["verdict"]
    yield Line(f"{SYMBOLS[verdict['word']]} {verdict['sentence']}", "strong")
    for name, message in verdict["problems"].items():
        yield Line(f"{name}: {message}", "worse", "point")
    if metrics["description"]:
        yield Line(metrics["description"])
    if metrics["partial"]:
        yield Line(PARTIAL, "doubtful")
    yield _outcomes_line(metrics)
    yield from trials_line(metrics)
    yield from run_notes(metrics)
    note = failure_note(metrics.get("judge_errors") or ())
    if note:
        yield Line(note, "doubtful")
    reliability = metrics["aggregate_metrics"].get("judge_reliability")
    if reliability:
        judgements = counted(reliability["spot_check_n"], "judgement")
        rate = score_text(reliability["disagreement_rate"])
        yield Line(f"In a spot check of {judgements}, a second judge disagreed with {rate} of them.")
    unwinnable = unwinnable_line(config)
    if unwinnable is not None:
        yield Line(unwinnable, "doubtful")


def _outcomes_line(metrics: Mapping[str, Any]) -> Line:
    outcomes = metrics["outcomes"]
    counts = (
        f"{outcomes['passed']} passed{_share(metrics)}",
        f"{outcomes['failed']} failed",
        f"{outcomes['error']} errors",
        f"{outcomes['xfailed']} known failures",
        f"{outcomes['skipped']} skipped",
    )
    overall = f"Overall score {score_text(metrics['overall_score'])}."
    return Line(f"{counted(metrics['total_tests'], 'case')}: {', '.join(counts)}. {overall}")


def _share(metrics: Mapping[str, Any]) -> str:
    """Return the share of passed cases with its 95 % interval, in percent."""
    total = metrics["total_tests"]
    if not total:
        return ""
    passed = metrics["outcomes"]["passed"] / total
    interval = share_interval(passed, total)
    within = ""
    if interval:
        low, high = interval
        within = f", 95 % within {100 * low:.0f} to {100 * high:.0f} %"
    return f" ({100 * passed:.0f} %{within})"


def _failures(metrics: Mapping[str, Any]) -> Iterator[Block]:
    for gate in metrics["gates"]:
        if gate["passed"] is False:
            yield Line(gate_line(gate), "worse", "point")
    errors = metrics["outcomes"]["error"]
    if errors:
        ending = "1 case ends in an error" if errors == 1 else f"{errors:,} cases end in errors"
        yield Line(f"{ending}: see run.log", "worse", "point")
    for changed in cases_by_change(metrics["comparison"] or {}, BASELINE, is_partial=metrics["partial"]):
        if changed.tone == "worse":
            yield NameList(changed.title, tuple(changed.keys))
    tags = sorted(metrics["failure_tags"].items(), key=lambda item: (-len(item[1]), item[0]))
    for tag, keys in tags:
        yield NameList(tag, tuple(keys))
    if tags:
        yield Line("What to look at first:")
    for tag, keys in tags[:3]:
        advice = _advice(tag)
        yield Line(f"{advice[0].upper()}{advice[1:]} {', '.join(keys[:3])}.", "doubtful", "point")


def _advice(tag: str) -> str:
    for start, text in ADVICE.items():
        if tag.startswith(start):
            return text
    return "look at"


def _compared(metrics: Mapping[str, Any], previous: Mapping[str, Any] | None) -> Iterator[Block]:
    """Yield the comparisons with the baseline and with `previous`, the run before, unless that is the baseline."""
    baseline: Mapping[str, Any] | None = metrics["comparison"]
    if baseline and previous and baseline["baseline_run_id"] == previous["baseline_run_id"]:
        yield Line(f"The previous complete run is {previous['baseline_run_id']}; it is the baseline.")
        yield from _against(BASELINE, baseline, metrics)
        return
    yield Line(_compared_runs(metrics, previous))
    if baseline:
        yield from _against(BASELINE, baseline, metrics)
    if previous:
        yield from _against("the previous run", previous, metrics)


def _compared_runs(metrics: Mapping[str, Any], previous: Mapping[str, Any] | None) -> str:
    """Name the baseline and the previous run, as far as there are any."""
    baseline = metrics["comparison"]
    before = f"The previous complete run is {previous['baseline_run_id']}" if previous else ""
    if baseline:
        return (
            f"The baseline is {baseline['baseline_run_id']}. {before or 'There was no complete run before this one'}."
        )
    sentence = "There was no baseline"
    if metrics["can_be_baseline"]:
        sentence += ": pytest --rageval-update-baseline makes this run the first one"
    if before:
        return f"{sentence}. {before}."
    return f"{sentence}, and no complete run before this one."


def _against(other: str, comparison: Mapping[str, Any], metrics: Mapping[str, Any]) -> Iterator[Block]:
    yield Line(f"Against {other}:", "strong")
    for problem in comparison["problems"]:
        yield Line(f"not comparable: {problem}", "worse", "remark")
    if comparison["compared"]:
        yield from metrics_section(comparison)
    for changed in cases_by_change(comparison, other, is_partial=metrics["partial"]):
        # Cases that newly fail against the baseline are listed above, with all that fails now.
        is_listed = other == BASELINE and changed.tone == "worse"
        if not is_listed:
            yield NameList(changed.title, tuple(changed.keys))


def _layers(metrics: Mapping[str, Any], registry: Registry) -> Iterator[str]:
    yield "Means are over the cases to which a metric applies; *scored* says how many of how many."
    yield ""
    for layer, summary in metrics["by_layer"].items():
        title = layer if layer == summary["title"] else f"{layer} {summary['title']}"
        yield f"### {title}: {score_text(summary['score'])}"
        yield ""
        rows = [_metric_row(name, metrics, registry) for name in summary["metrics"]]
        yield from table(["metric", "mean", *METRIC_HEADS], rows)
    yield "### Operations"
    yield ""
    rows = [_metric_row(name, metrics, registry) for name in run_level_names(metrics)]
    yield from table(["metric", "value", *METRIC_HEADS], rows)
    yield from _latency(metrics["volatile"])


def _latency(volatile: Mapping[str, Any]) -> Iterator[str]:
    latency = volatile["latency"]
    if latency["p50_ms"] is None:
        return
    median = f"median {duration(latency['p50_ms'])}"
    p95 = f"95 % within {duration(latency['p95_ms'])}"
    p99 = f"99 % within {duration(latency['p99_ms'])}"
    yield f"Latency of a question: {median}, {p95}, {p99}, at {volatile['concurrency']} in flight."
    waited = latency.get("retry_wait_ms")
    if waited:
        yield f"Requests that were repeated waited {duration(waited)} in all, which is no part of it."
    yield ""


def _metric_row(name: str, metrics: Mapping[str, Any], registry: Registry) -> list[str]:
    metric = metrics["metrics"][name]
    mean, moved, scored = (text for _, text in metric_figures(name, metrics))
    low, high = metric["scale"]
    if (low, high) != (0, 1):
        mean += f" of {high:g}"
    interval = NO_VALUE if metric["ci"] is None else " to ".join(map(score_text, metric["ci"]))
    bare = name.partition("@")[0]
    meaning = ""
    if bare in registry:
        meaning = registry[bare].doc.split("\n\n")[0]
    return [f"`{name}`", mean, interval, moved, scored, metric["better"], escaped(meaning)]


def _breakdown(metrics: Mapping[str, Any], name: str) -> Iterator[str]:
    groups = layer_rows(metrics, metrics.get("comparison"), name)
    if not groups:
        return
    rows = []
    for group in groups:
        outcomes = [str(group.outcomes[outcome]) for outcome in OUTCOMES]
        scores = [score_text(cell.score) for cell in group.cells.values()]
        rows.append([escaped(group.name), str(group.cases), *outcomes, *scores])
    yield from table([name, "cases", *OUTCOMES, *metrics["by_layer"]], rows)


def _configuration(config: Mapping[str, Any]) -> Iterator[str]:
    rows = [[escaped(name), escaped(value)] for name, value in _settings(config)]
    yield from table(["", "value"], rows)


def _settings(config: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    yield "target", config["target"]
    for name, version in sorted(config.get("observed", {}).items()):
        if version:
            yield f"version of {name}", version
    yield from _judge_settings(config)
    yield "k", config["k"]
    yield "folder mode", config["folder_mode"]
    yield "weight of vector scores", config["rerank_weights"]["vector"]
    yield "weight of lexical scores", config["rerank_weights"]["lexical"]
    params = ", ".join(f"{name}={value}" for name, value in config["params"].items())
    yield "parameters", params or "server default"
    yield "dataset", config["dataset_version"]
    for part, stem in BUILT.items():
        yield f"{part} version", setting_text(config.get(f"{stem}_version"))
    yield "configuration hash", config["config_hash"][:16]


def _judge_settings(config: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    judge = config["judge"] or {}
    judges = [f"fixture {place}" for place in judge.get("fixture", ())]
    if judge.get("model"):
        judges.insert(0, judge["model"])
    yield "judge", ", ".join(judges) or "none"
    if judge.get("temperature") is not None:
        yield "temperature of the judge", judge["temperature"]
    if judge:
        for name, version in config["rubrics"].items():
            yield f"prompt of {name}", version
