"""Recommendations: what to do about the most frequent causes, with the cases to look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_rageval.io.suggestions import listed
from pytest_rageval.render.markdown.markdown_text import bounded
from pytest_rageval.views.causes import ADVICE
from pytest_rageval.views.run_digest import RunDigest

SHOWN = 4
SHOWN_NAMES = 3


def recommendations(digest: RunDigest) -> list[str]:
    """Return what to do, for the most frequent kinds of causes first. A failing run is never to be accepted."""
    advice = list(_about_causes(digest))[:SHOWN]
    advice += _about_baseline(digest.metrics)
    return advice


def _about_causes(digest: RunDigest) -> Iterator[str]:
    told: set[str] = set()
    for cause in digest.causes or digest.known_causes:
        if cause.kind in told or cause.kind not in ADVICE:
            continue
        told.add(cause.kind)
        names = bounded(listed(cause.keys, SHOWN_NAMES), 400)
        yield f"{ADVICE[cause.kind]} See {names}."


def _about_baseline(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield how to accept a run that passes."""
    verdict = metrics["verdict"]
    # A failing run may become the baseline, but nothing advises it.
    if not metrics["can_be_baseline"] or verdict.get("fails_build", verdict["tone"] == "red"):
        return
    comparison = metrics["comparison"]
    if comparison is None:
        yield "`pytest --rageval-update-baseline` makes this run the first baseline."
    # Without fixed cases the baseline is as strict already.
    elif comparison["flipped_to_pass"]:
        yield "`pytest --rageval-update-baseline` accepts the fixed cases, so that they may not fail again."
