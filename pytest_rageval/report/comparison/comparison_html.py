"""Two runs side by side as a page: self-contained, without script, for screens light and dark and for paper."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from pytest_rageval.compare import comparison_words as words
from pytest_rageval.compare.gate_lines import gate_line
from pytest_rageval.io.suggestions import listed
from pytest_rageval.numbers import NO_VALUE
from pytest_rageval.report.columns import shortened
from pytest_rageval.text import printable

SHOWN_FLIPS = 100
"""Cases of each kind that are shown in full; the keys of the others follow."""
SHOWN_KEYS = 500
TEXT = 1000
"""Characters of a text that are shown."""


def comparison_html(content: Mapping[str, Any]) -> str:
    """The whole page. Every value in it is escaped by the template."""
    return _template().render(
        content=content, words=words, listed=listed, gate_line=gate_line, NO_VALUE=NO_VALUE, SHOWN_FLIPS=SHOWN_FLIPS,
        SHOWN_KEYS=SHOWN_KEYS, kinds=("flipped_to_fail", "flipped_to_pass", "unmeasured"),
    )  # fmt: skip


@cache
def _template() -> Template:
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    pages = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=_printable,
    )  # fmt: skip
    pages.filters["cut"] = lambda text: shortened(text, TEXT)
    return pages.get_template("comparison.html")


def _printable(value: Any) -> Any:
    """Control characters and marks that turn the direction of writing are shown, in all that is put in."""
    return printable(value) if type(value) is str else value
