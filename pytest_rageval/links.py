"""Addresses of the project and of its documentation, for messages and for files that the project writes."""

from __future__ import annotations

REPOSITORY = "https://github.com/pytest-rageval/pytest-rageval"
SITE = "https://pytest-rageval.readthedocs.io/en/latest"


def docs_page(topic: str) -> str:
    """Return where a page of the documentation is: in the terminal, and on the site.

    `topic` is the name of a file in `docs/`, without its ending.
    """
    return f"`rageval help {topic}` or {SITE}/{topic}.html"
