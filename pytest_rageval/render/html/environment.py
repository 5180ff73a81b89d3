"""The templates of everything in HTML, with the style and the script that go into a page, and its security policy."""

from __future__ import annotations

import re
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from importlib.resources import files
from importlib.util import cache_from_source
from itertools import chain
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from urllib.parse import quote

import jinja2
from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.doc_parts import doc_parts
from pytest_rageval.metrics.registry import LAYERS, Metric, Registry
from pytest_rageval.render.html.figures import FRAME
from pytest_rageval.text import counted, printable, score_text, short

FOLDED_LINES = 12
"""Lines of a text that are shown unfolded."""
LINE_WIDTH = 110
"""Characters that fit on a line of a page."""


class CompiledTemplates(FileSystemBytecodeCache):
    """Templates compiled once, kept where Python keeps compiled modules: compiling them takes 100 ms.

    As with modules, none is kept if Python writes no bytecode or has no permission to write.
    """

    def __init__(self) -> None:
        folder = Path(cache_from_source(str(Path(__file__).parent / "templates" / "any.py"))).parent
        # Another Jinja version may compile the same source to code that only it can run.
        super().__init__(str(folder), f"%s.{jinja2.__version__}.template")

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError, UnpicklingError):  # a damaged file, or none
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if not sys.dont_write_bytecode:
            # A folder of packages may be read-only: templates are then compiled each time.
            with suppress(OSError):
                Path(self.directory).mkdir(parents=True, exist_ok=True)
                super().dump_bytecode(bucket)


@cache
def environment() -> Environment:
    """Return the environment of the templates; autoescape is on for all of them."""
    pages = Environment(
        loader=PackageLoader("pytest_rageval.render.html"),
        autoescape=True,
        # A name that is misspelt in a template is an error, not an empty cell.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Templates belong to the installed package: no look at the disk at each use.
        auto_reload=False,
        bytecode_cache=CompiledTemplates(),
    )
    pages.filters |= {
        "key": case_address,
        "line": on_one_line,
        "counted": counted,
        "cases": list_address,
        "score": score_text,
        "short": short,
        "thousands": _thousands,
        "bare": _bare,
        "filled": filled_rows,
        "tipped": _tipped,
        "metric": metric_name,
        "tip": _tip,
        "labelled_metric": _labelled_metric,
        "filter_word": _filter_word,
    }
    pages.tests["long"] = _is_long
    pages.globals["plot_frame"] = FRAME
    pages.globals["is_served"] = False  # True in the web app, where command lines are of no use
    return pages


def _thousands(number: object) -> object:
    return f"{number:,}" if isinstance(number, int) else number


def rendered(name: str, **content: Any) -> str:
    """Fill in a template; show control characters and marks that turn the direction of writing.

    Once over the whole text: value by value, the same takes half of the time of rendering.
    """
    return printable(environment().get_template(name).render(content))


def macro(template: str, name: str) -> Callable[..., str]:
    """Return a macro of a template as a function; its output is escaped and shown as by `rendered`."""
    called = getattr(environment().get_template(template).module, name)
    return lambda *arguments: printable(called(*arguments))


@cache
def asset(name: str) -> str:
    """Return the style or the script that goes into a page."""
    return files("pytest_rageval.render.html").joinpath("assets", name).read_text(encoding="utf-8")


def style() -> Markup:
    return Markup(asset("tokens.css"))  # noqa: S704 because it is a file of ours


def script() -> Markup:
    return Markup(_script())  # noqa: S704 because it is a file of ours


@cache
def _script() -> str:
    """Return one script for the list of a report and for every page of a case."""
    return asset("case_parts.js") + asset("cases.js")


@cache
def policy() -> str:
    """Return the content security policy: our style and our script by their hashes, and nothing from anywhere."""
    style_source = _source(asset("tokens.css"))
    script_source = _source(_script())
    return (
        f"default-src 'none'; style-src {style_source}; script-src {script_source}; base-uri 'none'; form-action 'none'"
    )


def _source(text: str) -> str:
    digest = sha256(text.encode()).digest()
    return f"'sha256-{b64encode(digest).decode()}'"


def on_one_line(text: str | None, most: int = 90) -> str:
    """Return a text on one line, with … where it is cut."""
    if not text:
        return ""
    # Only the beginning is split: an answer may have megabytes.
    line = " ".join(text[: most + 10].split())
    if len(line) <= most < len(text):  # much white space: more text fits
        line = " ".join(text[: 4 * most].split())
    if len(line) <= most:
        return line
    return line[: most - 1].rstrip() + "…"


def case_address(key: str) -> str:
    """Return the part of the page's address that opens a case: `#/case/` and the key, escaped."""
    return f"#/case/{quote(printable(key), safe='')}"


def list_address(query: str) -> str:
    """Return the part of the page's address that lists the cases of a filter."""
    return f"#/cases?q={quote(printable(query), safe=':,')}"


@lru_cache(maxsize=1_000)
def metric_name(name: str, shown: str | None = None) -> Markup:
    """Return a metric's name, or `shown`, with the metric's definition as its tip."""
    return Markup('<span class="metric" title="{}">{}</span>').format(_tip(name), shown or name)


@lru_cache(maxsize=1_000)
def _tip(name: str) -> str:
    known = _built_in_metrics()
    bare = _bare(name)
    return metric_tip(known[bare]) if bare in known else "a metric of the project's own"


def metric_tip(metric: Metric) -> str:
    """Return the definition of a metric, after the tag and the title of its layer."""
    layer = " ".join(dict.fromkeys((metric.layer, LAYERS[metric.layer])))
    definition = doc_parts(metric).definition or "a metric of the project's own, without a description"
    return f"{layer}: {definition}"


@cache
def _built_in_metrics() -> Registry:
    return load_registry()


def filled_rows(rows: Iterable[Sequence[str]], pattern: str) -> Markup:
    """Fill the pattern of a table's row, or of a list's item, for each row.

    All values are escaped in one call: a call for each takes a third of the time of a case's page.
    """
    # NUL joins the values below, so that none may hold it.
    cells = [cell.replace("\0", "\\x00") for cell in chain.from_iterable(rows)]
    if not cells:
        return Markup("")
    values = str(escape("\0".join(cells))).split("\0")
    columns = pattern.count("{}")
    lines = [pattern.format(*values[start : start + columns]) for start in range(0, len(values), columns)]
    return Markup("".join(lines))  # noqa: S704 because the values are escaped


def _tipped(rows: Iterable[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Yield rows that begin with a metric's name, with the metric's definition before it."""
    return ((_tip(row[0]), *row) for row in rows)


def _labelled_metric(name: str, is_judged_by_model: bool) -> Markup:
    """Return the name, with a badge where a model gave the score of the metric whose name hides it."""
    shown = metric_name(name)
    if is_judged_by_model and _bare(name) == "reference_match":
        return shown + Markup(' <span class="badge">LLM as judge</span>')
    return shown


def _bare(name: str) -> str:
    """Return a metric without its cut-off; what a metric such as turn_decay@correctness is about stays."""
    return re.sub(r"@\d+$", "", name)


def _filter_word(text: str) -> str:
    """Return a value in the syntax of the filter language: quoted if it is more than one word."""
    if re.fullmatch(r"[^\s\"\\]+", text):
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", printable(text)) + '"'


def _is_long(text: str, lines: int = FOLDED_LINES) -> bool:
    """Return True if a text takes more lines than are shown unfolded."""
    if len(text) < LINE_WIDTH and text.count("\n") < lines:
        return False
    return sum(1 + len(line) // LINE_WIDTH for line in re.split("\n", text)) > lines
