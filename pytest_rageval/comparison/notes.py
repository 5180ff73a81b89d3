"""Notes on a comparison, and on golds that were matched in doubt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.comparison.changes import JUDGED_OTHERWISE, OVERALL
from pytest_rageval.comparison.known_failures import ADDED_GATES, added_gate_words
from pytest_rageval.comparison.layer_table import layer_notes, reason_in_words
from pytest_rageval.io.suggestions import listed
from pytest_rageval.matching.dialects import DOUBTS, is_ambiguous_flag, is_missed_flag
from pytest_rageval.runs.comparable import relabelled_note
from pytest_rageval.text import counted


def comparison_notes(content: Mapping[str, Any], cases: int) -> Iterator[str]:
    """Yield the notes on a comparison. `cases`: the number of cases in the run."""
    metrics = content["metrics"]
    yield from content["differences"]
    judged_otherwise = sorted(name for name, metric in metrics.items() if metric["why"] == JUDGED_OTHERWISE)
    if judged_otherwise:
        names = listed(judged_otherwise)
        yield f"not compared, since judged otherwise: {names}; --ignore-invariants compares them all the same"
    if content["gate_changes"]:
        yield f"the gates changed; the present ones decide about both runs: {', '.join(content['gate_changes'])}"
    for words in added_gate_words(content):
        yield f"{words}: {listed(sorted(content[ADDED_GATES]))}"
    if content["changed_cases"]:
        yield f"{alike_line(content, cases)}: {listed(content['changed_cases'])}"
    if content["relabelled"]:
        yield relabelled_note(content["relabelled"])
    if content["compared"] and not _is_without_scores(content):
        yield from missing_changes(content)


def _is_without_scores(content: Mapping[str, Any]) -> bool:
    """Return True if no shared case has a score now, as in a run of errors: no change is known, which is no news."""
    shared = int(content["paired"]["cases"])
    return 0 < shared == len(content["unmeasured"])


def missing_changes(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield why the overall score and layers have no change, as far as they have none."""
    metrics = content["metrics"]
    why = metrics.get(OVERALL, {}).get("why")
    if why:
        yield f"overall score: not compared, {reason_in_words(why)}"
    yield from layer_notes(content)


def alike_line(comparison: Mapping[str, Any], cases: int) -> str:
    """Return the note on a comparison of a part of the cases: `compared on 9 of 10 cases alike in both; 1 changed`."""
    changed = len(comparison["changed_cases"])
    return f"compared on {comparison['paired']['cases']:,} of {counted(cases, 'case')} alike in both; {changed} changed"


def doubt_counts(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many golds are matched in doubt, by the kind of doubt."""
    golds = _golds_in_doubt(metrics)
    for doubt, words in DOUBTS.items():
        if doubt in golds:
            yield f"{counted(golds[doubt], 'gold')} {words}"


def doubt_notes(metrics: Mapping[str, Any], flags: Sequence[str] = ()) -> Iterator[str]:
    """Yield how many golds were matched in doubt or missed with their text, and the names of several files."""
    golds = _golds_in_doubt(metrics)
    for doubt in filter(golds.get, DOUBTS):
        why = "headings are not reported; " if doubt == "document" else ""
        was = "was" if golds[doubt] == 1 else "were"
        yield f"{why}{counted(golds[doubt], 'gold')} {was} {DOUBTS[doubt]}; doubt:{doubt} filters their cases"
    ambiguous = set(filter(is_ambiguous_flag, flags))
    if ambiguous:
        yield f"{listed(sorted(ambiguous))}; path_prefix names the folders above the notes"
    missed = list(filter(is_missed_flag, flags))
    if missed:
        spellings = missed[0].partition(": ")[2]
        yield f"{counted(len(missed), 'gold')} missed, though a chunk holds the text; as in: {spellings}"


def _golds_in_doubt(metrics: Mapping[str, Any]) -> Mapping[str, int]:
    golds: Mapping[str, int] = (metrics.get("doubts") or {}).get("golds", {})
    return golds
