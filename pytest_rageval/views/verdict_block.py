"""The end of a run on every terminal: why cases fail, then the verdict and what changed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_rageval.comparison.verdict_facts import VerdictFacts
from pytest_rageval.comparison.verdict_sentence import SYMBOLS, with_verdict
from pytest_rageval.io.suggestions import and_more, listed
from pytest_rageval.runs.config_diff import SettingChange, arrow_text
from pytest_rageval.runs.row import Row
from pytest_rageval.text import counted
from pytest_rageval.views.causes import advice_on_run, causes_of
from pytest_rageval.views.operations import slower_line
from pytest_rageval.views.parts import TONES, Line, Section, Tone
from pytest_rageval.views.shared_traits import do_only_follow_ups_fail, shared_lines, traits_of_rows

Content = Mapping[str, Any]
FAILING = ("failed", "error")
# With these limits the end of a run fits on a terminal of 24 lines.
SHOWN_CAUSES = 6
SHOWN_CHANGES = 5
SHOWN_IDS = 3
SHOWN_TAGS = 2


@dataclass(frozen=True, slots=True)
class VerdictView:
    """The end of a run: on a terminal of 24 lines all of it is visible."""

    causes: Section
    """Why cases fail, the most frequent cause first; empty if none fails."""
    verdict: Section
    """The verdict in one line, the settings, versions and commits that changed, then what to do."""


def verdict_view(metrics: Content, rows: Sequence[Row], changes: Sequence[SettingChange]) -> VerdictView:
    """Return the end of a run by the content of its metrics.json.

    rows     one for each case
    changes  what differs since the compared run
    """
    # Known failures fail no build: their causes would stand before those of what got worse.
    failing = [row.key for row in rows if row.outcome in FAILING]
    traits = traits_of_rows(rows, FAILING)
    advice = advice_lines(metrics, failing, has_only_follow_ups=do_only_follow_ups_fail(traits))
    causes = list(causes_lines(metrics, failing))
    if causes:
        causes += (Line(text, form="detail") for text in shared_lines(traits))
    return VerdictView(
        causes=tuple(causes),
        verdict=(verdict_line(metrics), *_slower_lines(metrics), *changes_lines(changes), *advice),
    )


def verdict_line(metrics: Content) -> Line:
    """Return the symbol and the sentence of the verdict."""
    verdict = with_verdict(metrics)["verdict"]
    tone: Tone = "strong" if verdict["tone"] == "grey" else TONES[verdict["tone"]]
    return Line(f"{SYMBOLS[verdict['tone']]} {verdict['sentence']}", tone)


def _slower_lines(metrics: Content) -> Iterator[Line]:
    """Yield how much longer answers take; they fail no build, so that the verdict does not say it."""
    for text in slower_line(metrics["volatile"].get("slower_answers")):
        yield Line(text, "doubtful", "title")


def changes_lines(changes: Sequence[SettingChange]) -> Iterator[Line]:
    """Yield `what changed: k 5 → 7, params.min_score – → 0.5`; nothing if nothing did."""
    if not changes:
        return
    shown = ", ".join(map(arrow_text, changes[:SHOWN_CHANGES]))
    hidden = len(changes) - SHOWN_CHANGES
    more = f" {and_more(hidden)}: see rageval compare" if hidden > 0 else ""
    yield Line(f"what changed: {shown}{more}", form="title")


def cause_line(text: str, ids: Sequence[str], tags: Sequence[str] = ()) -> Line:
    """Return `5 × refused although an answer exists (over_abstention): q1, q2, q3 and 2 more`."""
    beside = f" ({listed(tags, SHOWN_TAGS)})" if tags else ""
    return Line(f"{len(ids):,} × {text}{beside}: {listed(ids, SHOWN_IDS)}", "worse", "detail")


def causes_lines(metrics: Content, failing: Sequence[str]) -> Iterator[Line]:
    """Yield a line a cause of the failing cases, which it names in their order; known failures are left out."""
    causes = causes_of(metrics, failing)
    if not causes:
        return
    yield Line("why cases fail", "strong")
    for cause in causes[:SHOWN_CAUSES]:
        ids = [_id(key) for key in cause.keys]
        yield cause_line(cause.text, ids, _shared_tags(metrics, cause.keys))
    others = causes[SHOWN_CAUSES:]
    if others:
        cases = counted(sum(len(cause.keys) for cause in others), "case")
        yield Line(f"{and_more(len(others), 'causes')} of {cases}", form="detail")


def advice_lines(metrics: Content, failing: Sequence[str], *, has_only_follow_ups: bool = False) -> Iterator[Line]:
    """Yield what to do about the most frequent cause, and the command that shows one of its cases."""
    causes = causes_of(metrics, failing)
    advice = advice_on_run(metrics, causes, has_only_follow_ups=has_only_follow_ups)
    if not causes:
        yield from (Line(f"what to do: {text}", form="title") for text in _advice_on_doubts(metrics))
    if advice:
        yield Line(f"what to do: {advice}", form="title")
        command = shlex.join(["rageval", "explain", str(metrics["volatile"]["run_id"]), _id(causes[0].keys[0])])
        yield Line(f"one case: {command}", form="title")


def _advice_on_doubts(metrics: Content) -> Iterator[str]:
    """Yield what to do about a run that passes though metrics without a gate fell, or gates were removed."""
    if metrics["partial"] or with_verdict(metrics)["verdict"]["tone"] != "amber":
        return
    facts = VerdictFacts(metrics, metrics.get("comparison"), metrics["gates"])
    if facts.regressed:
        where = f"filter fell:{facts.regressed[0]} in the report"
        yield f"Look at the cases that fell ({where}); a gate on the metric would fail the build."
    if facts.weaker_gates:
        yield "Put the gate back, or accept the present gates with --rageval-update-baseline."


def _shared_tags(metrics: Content, keys: Sequence[str]) -> list[str]:
    """Return the tags of the failed gates that all of these cases share."""
    tags = metrics.get("failure_tags", {})
    return [tag for tag, tagged in tags.items() if set(keys) <= set(tagged)]


def _id(key: str) -> str:
    return key.partition("::")[2]
