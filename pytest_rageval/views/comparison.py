"""Two runs side by side: verdict, settings, metrics, gates, categories and flipped cases, as every face shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pytest_rageval.comparison.gate_lines import gate_line, gate_state
from pytest_rageval.comparison.layer_table import layer_gain
from pytest_rageval.comparison.verdict_sentence import SYMBOLS
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.metrics.registry import LAYERS
from pytest_rageval.runs.config_diff import SettingChange, change_cells, setting_text
from pytest_rageval.text import NO_VALUE, change, counted
from pytest_rageval.views.causes import CauseView, advice_on
from pytest_rageval.views.compared_metrics import Content, metrics_section
from pytest_rageval.views.flipped_case import flipped_case
from pytest_rageval.views.operations import slower_line
from pytest_rageval.views.parts import (
    TONES,
    Block,
    FigureTable,
    FoldList,
    LabelledText,
    Line,
    NameList,
    Section,
    TableRow,
    Tone,
)
from pytest_rageval.views.verdict_block import SHOWN_CAUSES, cause_line

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
"""Titles of the lists of cases whose outcome differs, their tones, and how many cases a terminal shows."""
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


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """Two runs as every face shows them. If they cannot be compared, all is empty from the metrics on."""

    head: Section
    """The verdict, and what was configured otherwise."""
    sides: Section
    """Both runs, and why they cannot be compared, if so."""
    causes: Section
    """Why cases newly fail or fail a new gate, the most frequent cause first."""
    metrics: Section
    """The metrics that moved."""
    gates: Section
    categories: Section
    """Outcomes, flips and gains by category."""
    flipped_to_fail: Section
    """Cases that newly fail."""
    flipped_to_pass: Section
    """Cases that newly pass."""
    unmeasured: Section
    """Cases that have no score now."""
    one_sided: Section
    """Cases that only one side has, and the errors of both."""


def comparison_view(content: Content) -> ComparisonView:
    """Return the view of the content of a `ComparisonReport`."""
    # Runs that cannot be compared show why, and no figure that would be read as a change.
    shown = content if content["compared"] else _NO_COMPARISON
    return ComparisonView(
        head=(_verdict_line(content), *_slower_lines(content), _settings_line(content), settings_table(content)),
        sides=tuple(_sides(content)),
        causes=tuple(_causes(content)),
        metrics=tuple(metrics_section(shown)),
        gates=tuple(gate_point(gate, is_partial=content["after"]["partial"]) for gate in shown["gates"]),
        categories=tuple(_categories(shown)),
        flipped_to_fail=_flips(shown, "flipped_to_fail"),
        flipped_to_pass=_flips(shown, "flipped_to_pass"),
        unmeasured=_flips(shown, "unmeasured"),
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


def _verdict_line(content: Content) -> Line:
    verdict = content["verdict"]
    return Line(f"{SYMBOLS[verdict['tone']]} {verdict['sentence']}", TONES[verdict["tone"]], "title")


def _slower_lines(content: Content) -> Iterator[Line]:
    for text in slower_line(content.get("slower_answers")):
        yield Line(text, "doubtful")


def _causes(content: Content) -> Iterator[Line]:
    """Yield a line a cause; nothing for comparisons from before causes were recorded."""
    causes = content.get("causes", ())
    if not causes:
        return
    yield Line("why cases newly fail", "strong")
    for cause in causes[:SHOWN_CAUSES]:
        yield cause_line(cause["text"], [key.partition("::")[2] for key in cause["cases"]])
    hidden = len(causes) - SHOWN_CAUSES
    if hidden > 0:
        yield Line(and_more(hidden, "causes"), form="detail")
    advice = advice_on([CauseView(cause["kind"], cause["text"], cause["cases"]) for cause in causes])
    if advice:
        yield Line(f"what to do: {advice}")


def _sides(content: Content) -> Iterator[Block]:
    yield LabelledText("before", _side(content["before"]))
    yield LabelledText("after", _side(content["after"]))
    for problem in content["problems"]:
        if content["compared"]:
            yield Line(f"compared in spite of: {problem['said']}", "doubtful", "remark")
        else:
            yield Line(f"not comparable: {problem['said']}", "worse", "remark")
    for note in content["notes"]:
        yield Line(note, "doubtful", "remark")


def _outcome_count(name: str, number: int) -> str:
    words = OUTCOMES[name]
    # "passed", "failed" and "skipped" have no plural.
    return f"{number} {words.removesuffix('s')}" if number == 1 else f"{number:,} {words}"


def _side(run: Content) -> str:
    """Return `latest · run 20251218_063617 · 42 cases: 40 passed, 2 failed · partial`."""
    outcomes = run["outcomes"]
    counts = [_outcome_count(name, outcomes[name]) for name in OUTCOMES if outcomes.get(name)]
    parts = [run["name"]]
    if run["run_id"] != run["name"]:
        parts.append(f"run {run['run_id']}")
    parts.append(f"{counted(run['cases'], 'case')}: {', '.join(counts) or 'none ran'}")
    if run["partial"]:
        parts.append("partial")
    return " · ".join(parts)


def _settings_line(content: Content) -> Line:
    changed = content["changed"]
    return Line(changed["said"], "doubtful" if changed["warning"] else "plain")


def _flips(content: Content, name: str) -> Section:
    """Return the cases whose outcome differs in this way; () if there are none."""
    cases = content[name]
    if not cases:
        return ()
    title, tone, most = FLIPS[name]
    return (FoldList(title, tone, tuple(map(flipped_case, cases)), most, ELSEWHERE),)


TONES_OF_GATES: Mapping[str, Tone] = {"holds": "better", "fails": "worse", "silent": "doubtful"}


def gate_point(gate: Content, *, is_partial: bool) -> Line:
    """Return a gate of the run, and whether it passes."""
    state = gate_state(gate, is_partial=is_partial)
    return Line(f"{state.words}: {gate_line(gate, is_partial=is_partial)}", TONES_OF_GATES[state.kind], "point")


def settings_table(content: Content) -> FigureTable:
    """Return the settings that differ."""
    rows = []
    for setting in content["configuration"]:
        change = SettingChange(setting["name"], setting["before"], setting["after"])
        rows.append(TableRow((change.name, *change_cells(change))))
    return FigureTable(("setting", "before", "after"), tuple(rows), what="settings", has_texts=True, most=20)


def versions_table(content: Content) -> FigureTable:
    """Return the four versions: part, before, after, whether it changed."""
    rows = []
    for part, version in content["versions"].items():
        before = setting_text(version["before"])
        after = setting_text(version["after"])
        if version["changed"] is None:
            word = "not known"
        elif version["changed"]:
            word = "changed"
        elif version["before"] == version["after"]:
            word = "same"
        else:  # two versions of a dataset can hold the same cases
            word = "other version, same contents"
        rows.append(TableRow((part, before, after, word)))
    return FigureTable(("version", "before", "after", ""), tuple(rows), has_texts=True)


def _categories(content: Content) -> Iterator[FigureTable]:
    """Yield the categories with outcomes, flips, and the mean gain of each layer."""
    groups: Mapping[str, Content] = content["by_category"] or {}
    layers = _layers_of(groups.values(), content)
    rows = []
    for name in sorted(groups, key=lambda name: (-groups[name]["cases"], name)):
        group = groups[name]
        passed = f"{group['passed_before']} → {group['passed_after']}"
        to_fail = str(group["flipped_to_fail"] or NO_VALUE)
        to_pass = str(group["flipped_to_pass"] or NO_VALUE)
        gains = [change(layer_gain(layer, group["metrics"], content)) for layer in layers]
        rows.append(TableRow((name, str(group["cases"]), passed, to_fail, to_pass, *gains)))
    if rows:
        heads = ("category", "cases", "passed", "to fail", "to pass", *layers)
        yield FigureTable(heads, tuple(rows), "By category", "categories", least=5, most=12)


def _layers_of(groups: Iterable[Content], content: Content) -> list[str]:
    """Return the layers of the metrics that the groups have, in their order."""
    present = set()
    for group in groups:
        described = (content["metrics"][name] for name in group["metrics"])
        # Amounts have no scale, so that their layer has no change.
        present |= {metric["layer"] for metric in described if "unit" not in metric}
    return [layer for layer in LAYERS if layer in present]


def _one_sided(content: Content) -> Iterator[Block]:
    """Yield the cases that only one side has, and how many cases ended in errors."""
    for name, title in ONE_SIDED.items():
        if content[name]:
            yield NameList(title, tuple(content[name]))
    before = content["errors"]["before"]
    after = content["errors"]["after"]
    if before or after:
        yield Line(f"errors: {_kinds(before.values())} before, {_kinds(after.values())} after", form="point")


def _kinds(kinds: Iterable[str]) -> str:
    counts = Counter(kinds)
    if not counts:
        return "none"
    named = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
    return f"{counts.total()} ({named})"
