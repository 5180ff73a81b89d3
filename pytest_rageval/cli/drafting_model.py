"""The model that a verb asks for drafts: its options, its stored replies, and what is said of it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from pytest_rageval.cases.drafts import ENDING
from pytest_rageval.cli.options import STOPPED
from pytest_rageval.cli.terminal import clean
from pytest_rageval.config.project import Project
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.masking import Mask, public_target
from pytest_rageval.llm.chat_model import chat_model
from pytest_rageval.llm.endpoint_options import Budget, EndpointOptions
from pytest_rageval.make.asked_once import AskedOnce, Spent, StoredReplies
from pytest_rageval.model import Json
from pytest_rageval.text import counted, printable

MAX_COST = click.option(
    "--max-cost",
    metavar="USD",
    type=click.FloatRange(min=0, min_open=True),
    help="US dollars after which the model is asked no more.",
)
REPLIES = ".drafts.replies"
"""The suffix of the file of stored replies; no case file has it."""
_SPENT = ("requests", "kept", "dollars", "unreadable", "stopped")


def this_command() -> str:
    """Return the command line of this process, without a password."""
    return shlex.join(["rageval", *map(public_target, sys.argv[1:])])


def stored_replies(drafts: Path, mask: Mask) -> StoredReplies:
    """Return the replies that are stored beside a file of drafts."""
    return StoredReplies(drafts.with_name(drafts.name.removesuffix(ENDING) + REPLIES), mask)


def asked_model(project: Project, option: str, spec: str, replies: StoredReplies, max_cost: float | None) -> AskedOnce:
    """Return the model of this option, whose replies are stored."""
    settings = project.settings
    options = EndpointOptions(
        timeout=settings.timeout,
        retries=settings.retries,
        concurrency=settings.judge_concurrency,
        requests_per_minute=settings.judge_requests_per_minute,
        patience=settings.rate_limit_patience,
        tokens_per_minute=settings.judge_tokens_per_minute,
        budget=None if max_cost is None else Budget(max_cost),
    )
    try:
        return AskedOnce(lambda: chat_model(spec, options), replies, concurrency=settings.judge_concurrency)
    except SettingsError as error:
        raise SettingsError(*(f"{option}: {problem}" for problem in error.problems)) from None


def tell_spent(spent: Spent) -> None:
    """Say what a model was asked and why asking ended early, if it did."""
    cost = "cost unknown" if spent.dollars is None else f"${spent.dollars:.4f}"
    kept = f", {spent.kept} kept from before" if spent.kept else ""
    unreadable = f", {spent.unreadable} unreadable" if spent.unreadable else ""
    click.echo(f"the model: {counted(spent.requests, 'reply', 'replies')}, {cost}{kept}{unreadable}", err=True)
    if spent.stopped is not None:
        click.echo(clean(f"stopped: {spent.stopped}; the same command goes on from here"), err=True)
    if spent.is_interrupted:
        click.echo(printable(f"interrupted; {this_command()} goes on from here"), err=True)


def cost_in_words(dollars: float | None) -> str:
    """Return an estimated cost in words."""
    return "at a price that is not known" if dollars is None else f"about ${dollars:.4f}"


def spent_as_json(spent: Spent) -> dict[str, Json]:
    """Return what was spent by name."""
    return {name: getattr(spent, name) for name in _SPENT}


def exit_after(spent: Spent, *, has_failed: bool = False) -> None:
    """Exit with the code of a verb that asked a model: 130 after Ctrl-C, 1 if asking ended early or something broke."""
    if spent.is_interrupted:
        raise SystemExit(STOPPED)
    if has_failed or spent.stopped is not None:
        raise SystemExit(1)
