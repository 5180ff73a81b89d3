"""`rageval comment RUN`: a run in Markdown for a pull request, shown or written there."""

from __future__ import annotations

import asyncio
import os

import click

from pytest_rageval.cli.options import REPORTS
from pytest_rageval.cli.stored_run import open_run
from pytest_rageval.comparison.verdict_sentence import with_problem, with_verdict
from pytest_rageval.http.failures import HttpFailure
from pytest_rageval.render.markdown.annotations import notice
from pytest_rageval.render.markdown.pull_request import NoPullRequestError, pull_request_of, renew_comment
from pytest_rageval.render.markdown.run_markdown import run_markdown
from pytest_rageval.text import printable
from pytest_rageval.views.run_digest import run_digest


@click.command()
@click.argument("run", default="latest")
@click.option("--post", is_flag=True, help="Write it to the pull request of this job of GitHub Actions.")
@click.option("--name", default="evaluation", show_default=True, help="Which comment, if there are several.")
@click.option("--link", metavar="URL", help="Where the whole report is.")
@REPORTS
def comment(run: str, post: bool, name: str, link: str | None, reports: str | None) -> None:
    """Show RUN (default: the latest) as a comment on a pull request: verdict, causes, what moved, ten failing cases.

    With --post, the comment is written to the pull request, or replaced. If that is not allowed, as in a fork's job,
    a notice is printed, and the exit code stays 0.
    """
    opened = open_run(run, reports=reports)
    stored = opened.run
    metrics = with_verdict(stored.finished_metrics)
    if stored.damage is not None:
        metrics = with_problem(metrics, "records", stored.damage)
    text = run_markdown(run_digest(stored, metrics, opened.project.baseline_file), link=link)
    if not post:
        click.echo(text, nl=False)
        return
    try:
        address = asyncio.run(renew_comment(pull_request_of(os.environ), name, text))
    except (NoPullRequestError, HttpFailure) as problem:
        click.echo(notice("rageval", f"no comment was written: {problem}"))
    else:
        click.echo(f"comment: {printable(address)}")
