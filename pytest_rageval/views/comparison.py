"""Two runs side by side: verdict, settings, metrics, gates, categories and flipped cases, as every face shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pytest_rageval.comparison.changes import gain
from pytest_rageval.comparison.gate_lines import gate_line, p_text
from pytest_rageval.comparison.layer_table import layer_gain
from pytest_rageval.comparison.verdict_sentence import SYMBOLS
from pytest_rageval.io.suggestions import listed
from pytest_rageval.metrics.registry import LAYERS
from pytest_rageval.numbers import NO_VALUE, change, score_text, short
from pytest_rageval.runs.config_diff import setting_text
from pytest_rageval.text import counted
from pytest_rageval.views.parts import TONES, FigureTable, Line, TableRow, Tone

Content = Mapping[str, Any]
VERDICTS = ("regressed", "beyond tolerance, may be noise", "unmeasured", "significant, within tolerance", "improved",
            "new", "incomparable", "unchanged")  # fmt: skip
"""In the order in which a reader wants them."""
QUIET = ("unchanged", "new", "incomparable")
OUTCOMES = {"passed": "passed", "failed": "failed", "error": "errors", "xfailed": "known failures",
            "skipped": "skipped"}  # fmt: skip
FLIPS: Mapping[str, tuple[str, Tone]] = {
    "flipped_to_fail": ("Fail now, did not before", "worse"),
    "flipped_to_pass": ("Pass now, failed before", "better"),
    "unmeasured": ("Have no score now, had one before", "doubtful"),
}
ONE_SIDED = {
    "not_measured": "Failed before, and the gates that failed were not measured now",
    "newly_gated": "Fail gates that were not measured before",
    "changed_cases": "Changed in between, compared with nothing",
    "only_before": "Only before",
    "only_after": "Only after",
}
"""Lists of cases of which a comparison knows one side only."""
Where = Literal["before", "after"]


# ── metrics ───────────────────────────────────────────────────────────────────────────────────────────────────


class MetricColumn(NamedTuple):
    """A figure of a compared metric: its heading and its text. `page_head`: on a page, '' if the page shows its own."""

    head: str
    text: Callable[[Content], str]
    page_head: str = ""


def _after(metric: Content) -> str:
    top = metric["scale"][1]
    return score_text(metric["after"]) + (f" of {top:g}" if top != 1 and metric["after"] is not None else "")


def _interval(metric: Content) -> str:
    low, high = metric["ci"] or (None, None)
    return f"{low:+.3f} to {high:+.3f}" if low is not None and high is not None else NO_VALUE


METRIC_COLUMNS = (
    MetricColumn("before", lambda metric: score_text(metric["before"]), "before"),
    MetricColumn("after", _after),
    MetricColumn("change", lambda metric: change(metric["delta"]), "change"),
    MetricColumn("95 %", _interval, "95 % of the change"),
    MetricColumn("p", lambda metric: NO_VALUE if metric["p_adjusted"] is None else p_text(metric["p_adjusted"]), "p"),
    MetricColumn("n", lambda metric: str(metric["n_paired"])),
)
"""The figures of a compared metric, in every face."""


class ComparedMetric(NamedTuple):
    """A metric of a comparison. `figures`: by their heading; `worsened`: what a score that got worse did."""

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
    """Return how a metric's verdict is to be taken."""
    share = gain(metric["delta"], metric)
    if metric["verdict"] == "unmeasured":
        return "doubtful"
    if share is None or metric["verdict"] in QUIET:
        return "plain"
    if metric["verdict"] in ("regressed", "improved"):
        return "better" if share > 0 else "worse"
    return "doubtful" if share < 0 else "plain"


def moved_metrics(content: Content) -> list[ComparedMetric]:
    """Return the metrics in which something is to be seen, the worst verdict first."""
    metrics = [(name, metric) for name, metric in content["metrics"].items() if _is_worth_a_line(name, metric)]
    metrics.sort(key=lambda item: (VERDICTS.index(item[1]["verdict"]), gain(item[1]["delta"], item[1]) or 0, item[0]))
    return [compared_metric(name, metric) for name, metric in metrics]


def _is_worth_a_line(name: str, metric: Content) -> bool:
    has_moved = change(metric["delta"]) not in ("=", NO_VALUE)
    return metric["verdict"] not in QUIET or has_moved or metric["label"] != name


def metric_table(content: Content) -> FigureTable:
    """Return the metrics that moved as a table."""
    heads = ("metric", *(column.head for column in METRIC_COLUMNS), "verdict")
    rows = (
        TableRow((metric.label, *metric.figures.values(), metric.verdict), metric.tone)
        for metric in moved_metrics(content)
    )
    return FigureTable(heads, tuple(rows), "metrics", has_verdicts=True, least=4)


def quiet_metrics(content: Content) -> str:
    """Return how many metrics did not move, as a sentence; '' if all did."""
    rest = len(content["metrics"]) - len(moved_metrics(content))
    return f"{rest} more metric{'s' if rest != 1 else ''} did not move" if rest else ""


# ── the whole ─────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class FlippedCase:
    """A case whose outcome flipped. `chunks`: rank, place and what it is, before and after; None without a record."""

    key: str
    why: tuple[str, ...]
    scores: tuple[str, ...]
    question: str | None
    golds: tuple[tuple[str, str, str], ...]
    has_moved_gold: bool
    answers: tuple[tuple[str, str], ...]
    chunks: Mapping[Where, tuple[tuple[str, str, str], ...] | None]
    has_record: bool


class FlipList(NamedTuple):
    """The cases that flipped one way, the worst first."""

    title: str
    tone: Tone
    cases: tuple[FlippedCase, ...]


class GateView(NamedTuple):
    """A regression gate; `passed` is None if it says nothing."""

    passed: bool | None
    text: str


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """What every face shows of two runs, in this order. Parts that need a comparison are empty without one.

    sides     before and after, in a line each
    quiet     how many metrics did not move
    lists     cases that are known on one side only, by title
    """

    verdict: Line
    sides: tuple[tuple[str, str], ...]
    problems: tuple[Line, ...]
    notes: tuple[str, ...]
    changed: Line
    settings: FigureTable
    metrics: FigureTable
    quiet: str
    gates: tuple[GateView, ...]
    categories: FigureTable
    flips: tuple[FlipList, ...]
    lists: tuple[tuple[str, tuple[str, ...]], ...]
    errors: str


def comparison_view(content: Content) -> ComparisonView:
    """Return the view of the content of a `Paired`."""
    verdict, changed, is_compared = content["verdict"], content["changed"], content["compared"]
    shown = content if is_compared else _NOTHING
    return ComparisonView(
        verdict=Line(f"{SYMBOLS[verdict['word']]} {verdict['sentence']}", TONES[verdict["tone"]]),
        sides=tuple((name, _side(content[name])) for name in ("before", "after")),
        problems=tuple(_problems(content)),
        notes=tuple(content["notes"]),
        changed=Line(changed["said"], "doubtful" if changed["warning"] else "plain"),
        settings=settings_table(content),
        metrics=metric_table(shown),
        quiet=quiet_metrics(shown),
        gates=tuple(GateView(gate["passed"], gate_line(gate)) for gate in shown["gates"]),
        categories=_categories(shown),
        flips=tuple(
            FlipList(title, tone, tuple(map(_flipped_case, shown[name])))
            for name, (title, tone) in FLIPS.items()
            if shown[name]
        ),
        lists=tuple((title, tuple(shown[name])) for name, title in ONE_SIDED.items() if shown[name]),
        errors=_errors(shown),
    )


_NOTHING: Content = {
    "metrics": {}, "gates": (), "by_category": None, **dict.fromkeys((*FLIPS, *ONE_SIDED), ()),
    "errors": {"before": {}, "after": {}},
}  # fmt: skip
"""The compared part of runs that cannot be compared."""


def _side(run: Content) -> str:
    """Return `latest · run 20251218_063617 · 42 cases: 40 passed, 2 failed · partial`."""
    outcomes = run["outcomes"]
    counts = ", ".join(f"{outcomes[name]} {word}" for name, word in OUTCOMES.items() if outcomes.get(name))
    parts = [run["name"]] + [f"run {run['run_id']}"] * (run["run_id"] != run["name"])
    parts.append(f"{counted(run['cases'], 'case')}: {counts or 'none ran'}")
    return " · ".join(parts + ["partial"] * run["partial"])


def _problems(content: Content) -> Iterator[Line]:
    """Yield the invariants that do not hold."""
    is_compared = content["compared"]
    word = "compared in spite of" if is_compared else "not comparable"
    for problem in content["problems"]:
        yield Line(f"{word}: {problem['said']}", "doubtful" if is_compared else "worse")


def settings_table(content: Content) -> FigureTable:
    """Return the settings that differ."""
    rows = (
        TableRow((setting["name"], setting_text(setting["before"]), setting_text(setting["after"])))
        for setting in content["configuration"]
    )
    return FigureTable(("setting", "before", "after"), tuple(rows), "settings")


def versions_table(content: Content) -> FigureTable:
    """Return the four versions: part, before, after, whether it changed."""
    rows = (
        TableRow((part, setting_text(version["before"]), setting_text(version["after"]), _version_word(version)))
        for part, version in content["versions"].items()
    )
    return FigureTable(("version", "before", "after", ""), tuple(rows))


def _version_word(version: Content) -> str:
    """Return whether a version changed; of a dataset two versions can hold the same cases."""
    if version["changed"] is None:
        return "not known"
    if version["changed"]:
        return "changed"
    return "same" if version["before"] == version["after"] else "other version, same contents"


def _categories(content: Content) -> FigureTable:
    """Return the categories with outcomes, flips, and the mean gain of each layer."""
    groups = sorted((content["by_category"] or {}).items(), key=lambda item: (-item[1]["cases"], item[0]))
    there = {content["metrics"][name]["layer"] for _, group in groups for name in group["metrics"]}
    layers = [layer for layer in LAYERS if layer in there]
    rows = (
        TableRow(
            (
                name,
                str(group["cases"]),
                f"{group['passed_before']} → {group['passed_after']}",
                str(group["flipped_to_fail"] or NO_VALUE),
                str(group["flipped_to_pass"] or NO_VALUE),
                *(change(layer_gain(layer, group["metrics"], content)) for layer in layers),
            )
        )
        for name, group in groups
    )
    return FigureTable(
        ("category", "cases", "passed", "to fail", "to pass", *layers), tuple(rows), "categories", least=5
    )


def _errors(content: Content) -> str:
    """Return how many cases ended in errors, by kind; '' if none did."""
    before, after = (content["errors"][name] for name in ("before", "after"))
    return f"errors: {_kinds(before.values())} before, {_kinds(after.values())} after" if before or after else ""


def _kinds(kinds: Iterable[str]) -> str:
    counts = Counter(kinds)
    named = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
    return f"{counts.total()} ({named})" if counts else "none"


# ── a flipped case ────────────────────────────────────────────────────────────────────────────────────────────


def _flipped_case(case: Content) -> FlippedCase:
    detail = case["detail"]
    golds = detail["golds"] if detail else ()
    moves = (
        f"{score['metric']} {short(score['before'])} → {short(score['after'])}" for score in case.get("scores", ())
    )
    return FlippedCase(
        key=case["case_key"],
        why=tuple(_why(detail or {})),
        scores=tuple(moves),
        question=detail["question"] if detail else None,
        golds=tuple((f"gold {gold['gold']}", _gold_move(gold), gold["place"]) for gold in golds),
        has_moved_gold=any(gold["rank_before"] != gold["rank_after"] for gold in golds),
        answers=tuple(_answers(detail)) if detail else (),
        chunks={"before": _chunks(detail, "before"), "after": _chunks(detail, "after")},
        has_record=detail is not None,
    )


def _why(detail: Content) -> Iterator[str]:
    """Yield the failed gates or the error, of the side on which the case fails."""
    for name in ("after", "before"):
        if error := detail.get(f"error_{name}"):
            yield f"{error['kind']}: {error['message'] or 'no message was kept'}"
            return
        if gates := detail.get(f"failed_gates_{name}"):
            yield from map(failed_gate, gates)
            return


def failed_gate(gate: Content) -> str:
    """Return `recall_any@5 is 0, gate >= 1 (tag)`, of a gate as a record holds it."""
    tag = f" ({gate['tag']})" if gate["tag"] else ""
    return f"{gate['metric']} is {short(gate['value'])}, gate {gate['threshold']}{tag}"


def _gold_move(gold: Content) -> str:
    """Return `lost (was rank 1)`, `gained (rank 2)`, `rank 1 → 3` or `rank 1`."""
    before, after = gold["rank_before"], gold["rank_after"]
    if after is None:
        return f"lost (was rank {before})"
    if before is None:
        return f"gained (rank {after})"
    return f"rank {before}" if before == after else f"rank {before} → {after}"


def _chunks(detail: Content | None, where: Where) -> tuple[tuple[str, str, str], ...] | None:
    """Return what was retrieved on one side: rank, place, and what it is (golds, its rank on the other side)."""
    chunks = detail[f"chunks_{where}"] if detail else None
    if chunks is None:
        return None
    return tuple((str(chunk["rank"]), chunk["place"], _about_chunk(chunk, where)) for chunk in chunks)


def _about_chunk(chunk: Content, where: Where) -> str:
    golds = f"gold {', '.join(map(str, chunk['golds']))}" if chunk["golds"] else ""
    rank = chunk["other_rank"]
    if rank is None:
        other = "gone" if where == "before" else "new"
    else:
        other = f"rank {rank} after" if where == "before" else f"was rank {rank}"
    return ", ".join(part for part in (golds, other if rank != chunk["rank"] else "") if part)


def moved_chunks(case: FlippedCase) -> Iterator[tuple[str, str]]:
    """Yield which chunks are gone or new, of a case whose golds all stayed where they were."""
    before, after = case.chunks["before"], case.chunks["after"]
    if case.has_moved_gold or before is None or after is None:
        return
    for label, rows in (("gone", before), ("new", after)):
        if moved := [f"{rank} {place}" for rank, place, what in rows if what.endswith(label)]:
            yield label, listed(moved, 3)


def _answers(detail: Content) -> Iterator[tuple[str, str]]:
    """Yield the answer before and after, once if it is the same, or that none was kept."""
    texts = {name: _answer(detail, name) for name in ("before", "after")}
    if texts["before"] is not None and texts["before"] == texts["after"]:
        yield "answer", texts["before"]
        return
    for name, text in texts.items():
        yield f"answer {name}", "no record was kept" if text is None else text


def _answer(detail: Content, name: str) -> str | None:
    if detail[f"chunks_{name}"] is None:
        return None
    text: str | None = detail[f"answer_{name}"]
    if detail[f"abstained_{name}"]:
        return f"abstained: {text}" if text else "abstained"
    return text if text is not None else "no text was kept"
