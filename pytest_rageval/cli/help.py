"""`rageval help`: a page of the documentation in the terminal, from the installed package."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from io import StringIO
from pathlib import Path

import click

from pytest_rageval.cli.options import exit_codes, wants_colour
from pytest_rageval.io.suggestions import did_you_mean, listed
from pytest_rageval.links import SITE
from pytest_rageval.render.text.columns import aligned

PACKAGE = Path(__file__).parents[1]
NO_TOPICS = ("SKILL", "examples")
"""What stands beside the pages in the repository: a text for programs, and projects."""
WIDEST = 100
"""Columns of a page at most: longer lines of running text are hard to read."""
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_LINK_TO_PAGE = re.compile(r"(!?)\[([^\]\n]{1,200})\]\((?:([\w./-]{1,100})\.md)?(?:#[\w-]{0,100})?\)")
_EXAMPLE = re.compile(r"^```(\w+) [^\n]+$", re.MULTILINE)


@click.command()
@click.argument("topic", required=False)
@click.pass_context
@exit_codes({})
def help(context: click.Context, topic: str | None) -> None:
    """Show the page of the documentation about TOPIC; list all topics without one. Needs no network.

    Prints Markdown if the output is not a terminal.
    """
    pages = documentation()
    if topic is None:
        click.echo("\n".join(aligned(_topics(pages), to_the_left=True)))
        click.echo(f"\nrageval help TOPIC shows a page; with pictures and a search: {SITE}/")
        return
    root = context.find_root().command
    verbs = root.list_commands(context) if isinstance(root, click.Group) else ()
    text = pages[_known(topic, pages, verbs)].read_text(encoding="utf-8")
    if sys.stdout.isatty():
        click.echo_via_pager(rendered(text), color=wants_colour())
    else:
        click.echo(text, nl=False)


def documentation() -> dict[str, Path]:
    """Return the pages by topic: of the installed package, or of the repository."""
    installed = PACKAGE / "documentation"
    folder = installed if installed.is_dir() else PACKAGE.parent / "docs"
    paths = sorted(folder.rglob("*.md"), key=lambda path: path.with_suffix(""))  # "web" before "web-agents"
    pages = {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}
    return {topic: path for topic, path in pages.items() if topic.partition("/")[0] not in NO_TOPICS}


def _topics(pages: dict[str, Path]) -> list[tuple[str, str]]:
    """Return the topics with the titles of their pages."""
    topics = []
    for topic, path in pages.items():
        title = _TITLE.search(path.read_text(encoding="utf-8"))
        topics.append((topic, "" if title is None else title[1].replace("`", "")))
    return topics


def _known(topic: str, pages: dict[str, Path], verbs: Collection[str]) -> str:
    """Return the topic that a person means; raise UsageError, with what is near, if there is none."""
    wanted = topic.strip().lower().removesuffix(".md").removesuffix(".html").removeprefix("docs/").replace(" ", "-")
    if wanted in pages:
        return wanted
    in_folders = [known for known in pages if known.rpartition("/")[2] == wanted]
    if len(in_folders) == 1:
        return in_folders[0]
    remedy = did_you_mean(wanted, pages)
    about = [known for known, path in pages.items() if _has_heading(path, topic)]
    if not remedy and wanted in verbs:
        remedy = f"; `rageval {wanted} --help` tells all of that verb"
    elif not remedy and about:
        remedy = f"; there is a section about it in: {listed(about)}"
    raise click.UsageError(f"there is no page {topic!r}{remedy or '; `rageval help` lists all topics'}")


def _has_heading(path: Path, words: str) -> bool:
    headings = _HEADING.findall(path.read_text(encoding="utf-8"))
    return any(words.casefold() in heading.casefold() for heading in headings)


def rendered(text: str) -> str:
    """Return a page for a terminal. A link to another page names the command that shows it."""
    from rich.console import Console  # here: the list of topics needs none of it
    from rich.markdown import Markdown
    from rich.theme import Theme

    plain = _EXAMPLE.sub(r"```\1", _LINK_TO_PAGE.sub(_as_command, text))
    # The usual styles have a black background, which stands out on a light terminal.
    theme = Theme({"markdown.code": "bold", "markdown.code_block": "none"})
    console = Console(file=StringIO(), force_terminal=wants_colour(), theme=theme)
    console.width = min(console.width, WIDEST)
    with console.capture() as captured:
        console.print(Markdown(plain, code_theme="ansi_dark", hyperlinks=False))
    return captured.get()


def _as_command(link: re.Match[str]) -> str:
    is_picture, label, topic = link.groups()
    if is_picture:
        return f"(picture: {label})"
    return label if topic is None else f"{label} (`rageval help {topic}`)"
