"""Words and rows for the parts of a comparison, for the terminal, Markdown and HTML alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from pytest_rageval.comparison.changes import JUDGED_OTHERWISE, OVERALL, gain
from pytest_rageval.comparison.gate_lines import p_text
from pytest_rageval.comparison.layer_table import layer_gain, layer_notes
from pytest_rageval.comparison.verdict_sentence import SYMBOLS, VerdictTone, alike_line
from pytest_rageval.io.suggestions import listed
from pytest_rageval.metrics.registry import LAYERS
from pytest_rageval.numbers import NO_VALUE, change, score_text, short
from pytest_rageval.runs.comparable import relabelled_note
from pytest_rageval.runs.config_diff import setting_text
from pytest_rageval.text import counted

Tone = Literal["better", "worse", "doubtful", "plain"]
Content = Mapping[str, Any]
VERDICTS = ("regressed", "beyond tolerance, may be noise", "unmeasured", "significant, within tolerance", "improved",
            "new", "incomparable", "unchanged")  # fmt: skip
"""In the order in which a reader wants them."""
QUIET = ("unchanged", "new", "incomparable")
OUTCOMES = {
    "passed": "passed",
    "failed": "failed",
    "error": "errors",
    "xfailed": "known failures",
    "skipped": "skipped",
}
TITLES = {
    "flipped_to_fail": "Fail now, did not before",
    "flipped_to_pass": "Pass now, failed before",
    "unmeasured": "Have no score now, had one before",
    "not_measured": "Failed before, and the gates that failed were not measured now",
    "newly_gated": "Fail gates that were not measured before",
    "only_before": "Only before",
    "only_after": "Only after",
    "changed_cases": "Changed in between, compared with nothing",
}
ONE_SIDED = ("not_measured", "newly_gated", "changed_cases", "only_before", "only_after")
"""Lists of cases of which a comparison knows one side only."""
TONES: Mapping[VerdictTone, Tone] = {"red": "worse", "amber": "doubtful", "green": "better", "grey": "plain"}
"""How a verdict is to be taken."""


def side(run: Content) -> str:
    """`latest · run 20251218_063617 · 42 cases: 40 passed, 2 failed · partial`."""
    counts = ", ".join(
        f"{run['outcomes'][name]} {word}" for name, word in OUTCOMES.items() if run["outcomes"].get(name)
    )
    parts = [run["name"]] + [f"run {run['run_id']}"] * (run["run_id"] != run["name"])
    parts.append(f"{counted(run['cases'], 'case')}: {counts or 'none ran'}")
    return " · ".join(parts + ["partial"] * run["partial"])


def verdict_line(content: Content) -> str:
    """Return the sentence of the verdict with its symbol."""
    return f"{SYMBOLS[content['verdict']['word']]} {content['verdict']['sentence']}"


def comparison_notes(content: Content, cases: int) -> Iterator[str]:
    """Yield what else one should know of a comparison, as metrics.json or a pair holds it. `cases`: of the run."""
    yield from content["differences"]
    if unlike := sorted(name for name, metric in content["metrics"].items() if metric["why"] == JUDGED_OTHERWISE):
        yield f"not compared, since judged otherwise: {listed(unlike)}; --ignore-invariants compares them all the same"
    if changes := content["gate_changes"]:
        yield f"gates changed, and those of now decide about both runs: {', '.join(changes)}"
    if content["changed_cases"]:
        yield f"{alike_line(content, cases)}: {listed(content['changed_cases'])}"
    if content["relabelled"]:
        yield relabelled_note(content["relabelled"])
    if (why := content["metrics"].get(OVERALL, {}).get("why")) and content["compared"]:
        yield f"overall score: no change is shown, {why}"
    if content["compared"]:
        yield from layer_notes(content)


def problems(content: Content) -> list[str]:
    """Invariants that do not hold, as they are to be said."""
    word = "compared in spite of" if content["compared"] else "not comparable"
    return [f"{word}: {problem['said']}" for problem in content["problems"]]


def version_rows(content: Content) -> list[tuple[str, str, str, str]]:
    """The four versions: part, before, after, whether it changed."""
    return [
        (part, setting_text(version["before"]), setting_text(version["after"]), _version_word(version))
        for part, version in content["versions"].items()
    ]


def _version_word(version: Content) -> str:
    """Return whether a version changed; of a dataset two versions can hold the same cases."""
    if version["changed"] is None:
        return "not known"
    if version["changed"]:
        return "changed"
    return "same" if version["before"] == version["after"] else "other version, same contents"


def configuration_rows(content: Content) -> list[tuple[str, str, str]]:
    """Settings that differ: name, before, after."""
    return [
        (setting["name"], setting_text(setting["before"]), setting_text(setting["after"]))
        for setting in content["configuration"]
    ]


def metric_rows(content: Content) -> list[tuple[str, Content]]:
    """Metrics in which something is to be seen, by name, worst verdict first."""
    metrics = [(name, metric) for name, metric in content["metrics"].items() if _is_worth_a_line(name, metric)]
    return sorted(
        metrics, key=lambda item: (VERDICTS.index(item[1]["verdict"]), gain(item[1]["delta"], item[1]) or 0, item[0])
    )


def _is_worth_a_line(name: str, metric: Content) -> bool:
    has_moved = change(metric["delta"]) not in ("=", NO_VALUE)
    return metric["verdict"] not in QUIET or has_moved or metric["label"] != name


def quiet_metrics(content: Content) -> str:
    """How many metrics there are beside, as a sentence; '' where there are none."""
    rest = len(content["metrics"]) - len(metric_rows(content))
    return f"{rest} more metric{'s' if rest != 1 else ''} did not move" if rest else ""


def numbers(metric: Content) -> tuple[str, str, str, str, str]:
    """Before, after, change, 95 % interval of the change, p of the change."""
    top = metric["scale"][1]
    scale = "" if top == 1 else f" of {top:g}"
    low, high = metric["ci"] or (None, None)
    interval = f"{low:+.3f} to {high:+.3f}" if low is not None and high is not None else NO_VALUE
    p = metric["p_adjusted"]
    said_p = NO_VALUE if p is None else p_text(p)
    after = score_text(metric["after"]) + (scale if metric["after"] is not None else "")
    return score_text(metric["before"]), after, change(metric["delta"]), interval, said_p


def tone(metric: Content) -> Tone:
    """How a metric's verdict is to be taken."""
    share = gain(metric["delta"], metric)
    if metric["verdict"] == "unmeasured":
        return "doubtful"
    if share is None or metric["verdict"] in QUIET:
        return "plain"
    if metric["verdict"] in ("regressed", "improved"):
        return "better" if share > 0 else "worse"
    return "doubtful" if share < 0 else "plain"


def worsened(metric: Content) -> str:
    """Return what a score did that got worse: `fell`, or `rose` where lower is better."""
    return "fell" if metric["better"] == "higher" else "rose"


def layers(content: Content) -> list[str]:
    """Layers in which categories can be compared."""
    groups = (content["by_category"] or {}).values()
    there = {content["metrics"][name]["layer"] for group in groups for name in group["metrics"]}
    return [layer for layer in LAYERS if layer in there]


def category_rows(content: Content) -> list[tuple[str, ...]]:
    """Category, cases, passed before and after, how many flipped each way, and the mean gain of each layer."""
    groups = sorted((content["by_category"] or {}).items(), key=lambda item: (-item[1]["cases"], item[0]))
    return [
        (
            name,
            str(group["cases"]),
            f"{group['passed_before']} → {group['passed_after']}",
            str(group["flipped_to_fail"] or NO_VALUE),
            str(group["flipped_to_pass"] or NO_VALUE),
            *(change(layer_gain(layer, group["metrics"], content)) for layer in layers(content)),
        )
        for name, group in groups
    ]


def case_id(key: str) -> str:
    """The part of a case key by which people know the case."""
    return key.partition("::")[2] or key


def failed_gates(flip: Content) -> list[str]:
    """`recall_any@5 is 0, gate >= 1 (tag)`, of the side on which the case fails; the error where it ended in one."""
    detail = flip["detail"] or {}
    for name in ("after", "before"):
        if error := detail.get(f"error_{name}"):
            return [f"{error['kind']}: {error['message'] or 'no message was kept'}"]
        if gates := detail.get(f"failed_gates_{name}"):
            return [failed_gate(gate) for gate in gates]
    return []


def failed_gate(gate: Content) -> str:
    """`recall_any@5 is 0, gate >= 1 (tag)`, of a gate as a record holds it."""
    tag = f" ({gate['tag']})" if gate["tag"] else ""
    return f"{gate['metric']} is {short(gate['value'])}, gate {gate['threshold']}{tag}"


def gold_rows(detail: Content) -> list[tuple[str, str, str]]:
    """Golds that came on either side: which, what became of its rank, where it stands."""
    return [(f"gold {gold['gold']}", gold_move(gold), gold["place"]) for gold in detail["golds"]]


def gold_move(gold: Content) -> str:
    """`lost (was rank 1)`, `gained (rank 2)`, `rank 1 → 3`, `rank 1`."""
    before, after = gold["rank_before"], gold["rank_after"]
    if after is None:
        return f"lost (was rank {before})"
    if before is None:
        return f"gained (rank {after})"
    return f"rank {before}" if before == after else f"rank {before} → {after}"


def chunk_rows(detail: Content, where: Literal["before", "after"]) -> list[tuple[str, str, str]]:
    """What was retrieved on one side: rank, place, and what it is (golds, its rank on the other side)."""
    rows = []
    for chunk in detail[f"chunks_{where}"] or ():
        golds = f"gold {', '.join(map(str, chunk['golds']))}" if chunk["golds"] else ""
        rows.append(
            (str(chunk["rank"]), chunk["place"], ", ".join(part for part in (golds, _other(chunk, where)) if part))
        )
    return rows


def _other(chunk: Content, where: str) -> str:
    rank = chunk["other_rank"]
    if rank is None:
        return "gone" if where == "before" else "new"
    if rank == chunk["rank"]:
        return ""
    return f"rank {rank} after" if where == "before" else f"was rank {rank}"


def answers(detail: Content) -> Iterator[tuple[str, str]]:
    """The answer before and after, once where it is the same; what is not there is said."""
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


def moved_scores(flip: Content, most: int) -> str:
    """`mrr 1 → 0.5, recall_any@5 1 → 0`."""
    moves = [f"{score['metric']} {short(score['before'])} → {short(score['after'])}" for score in flip["scores"]]
    return listed(moves, most)


def errors(content: Content) -> str:
    """How many cases ended in errors, by kind, where any did."""
    before, after = (content["errors"][name] for name in ("before", "after"))
    if not before and not after:
        return ""
    return f"errors: {_kinds(before.values())} before, {_kinds(after.values())} after"


def _kinds(kinds: Iterable[str]) -> str:
    counts: dict[str, int] = {}
    for kind in kinds:
        counts[kind] = counts.get(kind, 0) + 1
    named = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
    return f"{sum(counts.values())} ({named})" if counts else "none"
