"""Two runs side by side: verdict, settings, metrics, gates, categories and flipped cases, as every face shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_rageval.comparison.changes import gain
from pytest_rageval.comparison.gate_lines import failed_gate, gate_line, p_text
from pytest_rageval.comparison.layer_table import layer_gain
from pytest_rageval.comparison.verdict_sentence import SYMBOLS
from pytest_rageval.io.suggestions import and_more, listed
from pytest_rageval.metrics.registry import LAYERS
from pytest_rageval.runs.config_diff import setting_text
from pytest_rageval.text import NO_VALUE, change, counted, score_text, short
from pytest_rageval.views.parts import (
    TONES,
    Block,
    FigureTable,
    Fold,
    FoldList,
    LabelledText,
    Line,
    NameList,
    Section,
    TableRow,
    Tone,
)

Content = Mapping[str, Any]
VERDICTS = (
    "regressed",
    "beyond tolerance, may be noise",
    "unmeasured",
    "significant, within tolerance",
    "improved",
    "new",
    "incomparable",
    "unchanged",
)
"""Verdicts in the order of display."""
QUIET = ("unchanged", "new", "incomparable")
OUTCOMES = {
    "passed": "passed",
    "failed": "failed",
    "error": "errors",
    "xfailed": "known failures",
    "skipped": "skipped",
}
FLIPS: Mapping[str, tuple[str, Tone, int]] = {
    "flipped_to_fail": ("Fail now, did not before", "worse", 10),
    "flipped_to_pass": ("Pass now, failed before", "better", 5),
    "unmeasured": ("Have no score now, had one before", "doubtful", 5),
}
SHOWN_SCORES, SHOWN_GROUPS = 5, 3
ELSEWHERE = "--format html shows more of them, --format json all"
ONE_SIDED = {
    "not_measured": "Failed before, and the gates that failed were not measured now",
    "fails_new_gate": "Failed before, and fail a new gate",
    "newly_gated": "Fail gates that were not measured before",
    "changed_cases": "Changed in between, compared with nothing",
    "only_before": "Only before",
    "only_after": "Only after",
}
"""Titles of the lists of cases that have one side only."""


# ── metrics ───────────────────────────────────────────────────────────────────────────────────────────────────


class MetricColumn(NamedTuple):
    """A figure of a compared metric: heading, text, and another heading on a page, '' if the page shows its own."""

    head: str
    text: Callable[[Content], str]
    other_head: str | None = None

    @property
    def page_head(self) -> str:
        return self.head if self.other_head is None else self.other_head


def _after(metric: Content) -> str:
    top = metric["scale"][1]
    return score_text(metric["after"]) + (f" of {top:g}" if top != 1 and metric["after"] is not None else "")


def _interval(metric: Content) -> str:
    low, high = metric["ci"] or (None, None)
    return f"{low:+.3f} to {high:+.3f}" if low is not None and high is not None else NO_VALUE


METRIC_COLUMNS = (
    MetricColumn("before", lambda metric: score_text(metric["before"])),
    MetricColumn("after", _after, ""),
    MetricColumn("change", lambda metric: change(metric["delta"])),
    MetricColumn("95 %", _interval, "95 % of the change"),
    MetricColumn("p", lambda metric: NO_VALUE if metric["p_adjusted"] is None else p_text(metric["p_adjusted"])),
    MetricColumn("n", lambda metric: str(metric["n_paired"]), ""),
)
"""The figures of a compared metric, in every face."""


class ComparedMetric(NamedTuple):
    """A metric of a comparison. `figures`: by their heading; `worsened`: the verb for a worse score."""

    name: str
    label: str
    figures: Mapping[str, str]
    verdict: str
    tone: Tone
    worsened: str


def compared_metric(name: str, metric: Content) -> ComparedMetric:
    """Return the view of a metric of a comparison."""
    figures = {column.head: column.text(metric) for column in METRIC_COLUMNS}
    worsened = "fell" if metric["better"] == "higher" else "rose"
    return ComparedMetric(name, metric["label"], figures, metric["verdict"], tone_of(metric), worsened)


def tone_of(metric: Content) -> Tone:
    """Return the tone of a metric's verdict."""
    share = gain(metric["delta"], metric)
    if metric["verdict"] == "unmeasured":
        return "doubtful"
    if share is None or metric["verdict"] in QUIET:
        return "plain"
    if metric["verdict"] in ("regressed", "improved"):
        return "better" if share > 0 else "worse"
    return "doubtful" if share < 0 else "plain"


def moved_metrics(content: Content) -> list[ComparedMetric]:
    """Return the metrics that moved or have a verdict to show, the worst verdict first."""
    metrics = [
        (name, metric)
        for name, metric in content["metrics"].items()
        if metric["verdict"] not in QUIET or change(metric["delta"]) not in ("=", NO_VALUE) or metric["label"] != name
    ]
    metrics.sort(key=lambda item: (VERDICTS.index(item[1]["verdict"]), gain(item[1]["delta"], item[1]) or 0, item[0]))
    return [compared_metric(name, metric) for name, metric in metrics]


# ── the whole ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """Two runs as every face shows them. If they cannot be compared, all is empty from the metrics on."""

    head: Section
    settings: Section
    metrics: Section
    gates: Section
    categories: Section
    flipped_to_fail: Section
    flipped_to_pass: Section
    unmeasured: Section
    one_sided: Section


def comparison_view(content: Content) -> ComparisonView:
    """Return the view of the content of a `ComparisonReport`."""
    shown = content if content["compared"] else _NO_COMPARISON
    return ComparisonView(
        head=tuple(_head(content)),
        settings=(
            Line(content["changed"]["said"], "doubtful" if content["changed"]["warning"] else "plain"),
            settings_table(content),
        ),
        metrics=tuple(metrics_section(shown)),
        gates=tuple(map(gate_point, shown["gates"])),
        categories=tuple(_categories(shown)),
        **{
            name: (FoldList(title, tone, tuple(map(_flipped_case, shown[name])), most, ELSEWHERE),)
            if shown[name]
            else ()
            for name, (title, tone, most) in FLIPS.items()
        },
        one_sided=tuple(_one_sided(shown)),
    )


_NO_COMPARISON: Content = {
    "metrics": {},
    "gates": (),
    "by_category": None,
    **dict.fromkeys((*FLIPS, *ONE_SIDED), ()),
    "errors": {"before": {}, "after": {}},
}
"""The compared part of runs that cannot be compared."""


def _head(content: Content) -> Iterator[Block]:
    verdict, is_compared = content["verdict"], content["compared"]
    yield Line(f"{SYMBOLS[verdict['word']]} {verdict['sentence']}", TONES[verdict["tone"]], "title")
    yield from (LabelledText(name, _side(content[name])) for name in ("before", "after"))
    for problem in content["problems"]:
        word = "compared in spite of" if is_compared else "not comparable"
        yield Line(f"{word}: {problem['said']}", "doubtful" if is_compared else "worse", "remark")
    yield from (Line(note, "doubtful", "remark") for note in content["notes"])


def _side(run: Content) -> str:
    """Return `latest · run 20251218_063617 · 42 cases: 40 passed, 2 failed · partial`."""
    outcomes = run["outcomes"]
    counts = ", ".join(f"{outcomes[name]} {word}" for name, word in OUTCOMES.items() if outcomes.get(name))
    parts = [run["name"]] + [f"run {run['run_id']}"] * (run["run_id"] != run["name"])
    parts.append(f"{counted(run['cases'], 'case')}: {counts or 'none ran'}")
    return " · ".join(parts + ["partial"] * run["partial"])


def metrics_section(content: Content) -> Iterator[Block]:
    """Yield the metrics that moved, and how many did not."""
    heads = ("metric", *(column.head for column in METRIC_COLUMNS), "verdict")
    moved = moved_metrics(content)
    rows = (TableRow((metric.label, *metric.figures.values(), metric.verdict), metric.tone) for metric in moved)
    if moved:
        yield FigureTable(heads, tuple(rows), "Metrics", "metrics", has_verdicts=True, least=4)
    if rest := len(content["metrics"]) - len(moved):
        yield Line(f"{rest} more metric{'s' if rest != 1 else ''} did not move")
    yield from map(Line, fallen_lines(content))


def fallen_lines(content: Content) -> list[str]:
    """Return a line for each group of metrics that got worse in the same cases."""
    groups = content.get("fallen", ())
    more = [and_more(len(groups) - SHOWN_GROUPS, "such groups")] * (len(groups) > SHOWN_GROUPS)
    return [
        f"the same {group['cases']:,} cases got worse in {len(names := group['metrics'])} metrics: {listed(names, 3)}"
        for group in groups[:SHOWN_GROUPS]
    ] + more


def gate_point(gate: Content) -> Line:
    """Return a gate of the run, and whether it passes."""
    words: Mapping[bool | None, tuple[str, Tone]] = {
        True: ("holds", "better"),
        False: ("FAILS", "worse"),
        None: ("says nothing", "doubtful"),
    }
    word, tone = words[gate["passed"]]
    return Line(f"{word}: {gate_line(gate)}", tone, "point")


def settings_table(content: Content) -> FigureTable:
    """Return the settings that differ."""
    rows = (
        TableRow((setting["name"], setting_text(setting["before"]), setting_text(setting["after"])))
        for setting in content["configuration"]
    )
    return FigureTable(("setting", "before", "after"), tuple(rows), what="settings", has_texts=True, most=20)


def versions_table(content: Content) -> FigureTable:
    """Return the four versions: part, before, after, whether it changed."""
    rows = []
    for part, version in content["versions"].items():
        before, after = setting_text(version["before"]), setting_text(version["after"])
        # Two versions of a dataset can hold the same cases.
        same = "same" if version["before"] == version["after"] else "other version, same contents"
        word = "not known" if version["changed"] is None else "changed" if version["changed"] else same
        rows.append(TableRow((part, before, after, word)))
    return FigureTable(("version", "before", "after", ""), tuple(rows), has_texts=True)


def _categories(content: Content) -> Iterator[FigureTable]:
    """Yield the categories with outcomes, flips, and the mean gain of each layer."""
    groups = sorted((content["by_category"] or {}).items(), key=lambda item: (-item[1]["cases"], item[0]))
    there = {content["metrics"][name]["layer"] for _, group in groups for name in group["metrics"]}
    layers = [layer for layer in LAYERS if layer in there]
    rows = []
    for name, group in groups:
        passed = f"{group['passed_before']} → {group['passed_after']}"
        flips = (str(group[flip] or NO_VALUE) for flip in ("flipped_to_fail", "flipped_to_pass"))
        gains = (change(layer_gain(layer, group["metrics"], content)) for layer in layers)
        rows.append(TableRow((name, str(group["cases"]), passed, *flips, *gains)))
    if rows:
        heads = ("category", "cases", "passed", "to fail", "to pass", *layers)
        yield FigureTable(heads, tuple(rows), "By category", "categories", least=5, most=12)


def _one_sided(content: Content) -> Iterator[Block]:
    """Yield the cases that only one side has, and how many cases ended in errors."""
    yield from (NameList(title, tuple(content[name])) for name, title in ONE_SIDED.items() if content[name])
    before, after = (content["errors"][name] for name in ("before", "after"))
    if before or after:
        yield Line(f"errors: {_kinds(before.values())} before, {_kinds(after.values())} after", form="point")


def _kinds(kinds: Iterable[str]) -> str:
    counts = Counter(kinds)
    named = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
    return f"{counts.total()} ({named})" if counts else "none"


# ── a flipped case ────────────────────────────────────────────────────────────────────────────────────────────


def _flipped_case(case: Content) -> Fold:
    detail, reasons = case["detail"], tuple(_why(case["detail"] or {}))
    table = None
    if detail:
        ranks = ("rank_before", "rank_after")
        rows = (
            (
                *(str(chunk[side] or NO_VALUE) for side in ranks),
                ", ".join(map(str, chunk["golds"])),
                chunk["place"],
                chunk["state"],
            )
            for chunk in detail["chunks"]
        )
        table = FigureTable(("before", "after", "gold", "place", ""), tuple(map(TableRow, rows)), has_texts=True)
    return Fold(case["case_key"], reasons, tuple(_facts(case, reasons)), table)


def _facts(case: Content, reasons: Sequence[str]) -> Iterator[LabelledText]:
    detail = case["detail"]
    if detail and detail["question"] is not None:
        yield LabelledText("question", "", detail["question"])
    yield from (LabelledText("why", reason) for reason in reasons)
    if case.get("scores"):
        moves = (f"{each['metric']} {short(each['before'])} → {short(each['after'])}" for each in case["scores"])
        yield LabelledText("scores", listed([*moves], SHOWN_SCORES))
    if detail is None:
        yield LabelledText("records", "none were kept of this case")
        return
    yield from (LabelledText(f"gold {gold['gold']}", _gold_move(gold), gold["place"]) for gold in detail["golds"])
    yield from _moved_chunks(detail)
    yield from _answers(detail)


def _why(detail: Content) -> Iterator[str]:
    """Yield the failed gates or the error of the side on which the case fails."""
    for name in ("after", "before"):
        if error := detail.get(f"error_{name}"):
            yield f"{error['kind']}: {error['message'] or 'no message was kept'}"
            return
        if gates := detail.get(f"failed_gates_{name}"):
            yield from map(failed_gate, gates)
            return


def _gold_move(gold: Content) -> str:
    """Return `lost (was rank 1)`, `gained (rank 2)`, `rank 1 → 3` or `rank 1`."""
    before, after = gold["rank_before"], gold["rank_after"]
    if after is None:
        return f"lost (was rank {before})"
    if before is None:
        return f"gained (rank {after})"
    return f"rank {before}" if before == after else f"rank {before} → {after}"


def _moved_chunks(detail: Content) -> Iterator[LabelledText]:
    """Yield the chunks that are gone or new in a case whose golds all kept their ranks."""
    is_known = detail["has_record_before"] and detail["has_record_after"]
    if not is_known or any(gold["rank_before"] != gold["rank_after"] for gold in detail["golds"]):
        return
    for state in ("gone", "new"):
        chunks = [chunk for chunk in detail["chunks"] if chunk["state"] == state]
        if moved := [f"{chunk['rank_before'] or chunk['rank_after']} {chunk['place']}" for chunk in chunks]:
            yield LabelledText(state, "", listed(moved, 3))


def _answers(detail: Content) -> Iterator[LabelledText]:
    """Yield the answer before and after, once if both are equal, or that none was kept."""
    texts: dict[str, str | None] = {}
    for name in ("before", "after"):
        text = detail[f"answer_{name}"]
        if detail[f"abstained_{name}"]:
            text = f"abstained: {text}" if text else "abstained"
        elif detail[f"undecided_{name}"]:
            text = f"undecided whether it abstained: {text}"
        texts[name] = (text if text is not None else "no text was kept") if detail[f"has_record_{name}"] else None
    if texts["before"] is not None and texts["before"] == texts["after"]:
        yield LabelledText("answer", "", texts["before"])
        return
    for name, text in texts.items():
        yield LabelledText(f"answer {name}", "", "no record was kept" if text is None else text)
