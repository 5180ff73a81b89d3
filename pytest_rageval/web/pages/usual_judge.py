"""The judge that a new agent begins with: a model if one is configured, else words alone."""

from __future__ import annotations

from typing import NamedTuple

from pytest_rageval.errors import RagevalError
from pytest_rageval.io.masking import public_target
from pytest_rageval.judges.judge_spec import asks_server
from pytest_rageval.providers import JUDGING
from pytest_rageval.web.keys import key_states
from pytest_rageval.web.site import Site

WORDS_ALONE = "lexical"


class UsualJudge(NamedTuple):
    """A judge's spec as pages may show it, and why it is the one, for people."""

    spec: str
    reason: str


def usual_judge(site: Site) -> UsualJudge:
    """Return the project's own model as judge, else a model of a provider whose key is set, else words alone."""
    own = _own_judge(site)
    if own is not None:
        return own
    states = {state.name: state for state in key_states(site.settings.env_file)[0]}
    offered = [row for row in JUDGING.values() if row.title and row.key and row.models]
    for row in offered:
        state = states.get(row.key or "")
        if state is not None and state.is_set:
            reason = f"A model judges: {state.name} is {state.where}. Each judgement is paid to {row.title}."
            return UsualJudge(f"{row.kind}:{row.models[0]}", reason)
    keys = " or ".join(row.key for row in offered if row.key)
    reason = (
        "No model judges: no key of a provider is set, so answers are compared by their words alone. That is free and "
        f"rough: a right answer in other words may fail. Set {keys}, or name a server below, to let a model judge."
    )
    return UsualJudge(WORDS_ALONE, reason)


def _own_judge(site: Site) -> UsualJudge | None:
    """Return the judge of the project's configuration if it is a model on a server that the form can name."""
    try:
        settings = site.project().settings
    except RagevalError:
        return None  # the pages of runs say what is wrong with it
    if not asks_server(settings.judge) or settings.judge_base_url is not None:
        return None
    shown = public_target(settings.judge)
    reason = f"A model judges: {shown}, as the project's configuration says."
    if shown != settings.judge:
        reason += " The key in its URL is not shown, and no agent keeps it."
    return UsualJudge(shown, reason)


def with_own_key(site: Site, judge: str) -> str:
    """Return the judge of a form with the key that pages do not show, if it is the project's own."""
    own = site.project().settings.judge
    return own if judge == public_target(own) else judge
