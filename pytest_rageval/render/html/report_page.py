"""The HTML report of a run: first screen, sections, and the cases as compressed blocks for its script."""

from __future__ import annotations

import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from markupsafe import Markup
from pydantic_core import to_json

from pytest_rageval.comparison.case_filter import all_rounded
from pytest_rageval.comparison.listed_case import FLAKY, ListedCase
from pytest_rageval.render.html.case_columns import case_columns
from pytest_rageval.render.html.case_view import case_views
from pytest_rageval.render.html.environment import macro, on_one_line, policy, rendered, script, style
from pytest_rageval.render.html.first_screen import FirstScreen, first_screen
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.render.html.sections import Sections, report_sections
from pytest_rageval.render.html.variables import variables
from pytest_rageval.text import printable
from pytest_rageval.views.comparison import ONE_SIDED

BODIES = 96
"""Cases in a block of rendered fragments: to open a case, its block is inflated, 1 MB in 1 ms. Each block repeats what
pages share: with half as many cases in a block, the same size takes level 8, and a quarter more time.
"""
WHY = 140
"""Characters of a reason in the list."""
TEXTS = 2048
"""Cases in a block of questions, answers and reasons."""
LEVEL = 4
"""Level of zlib. At 5 a page is a tenth smaller, and compressed in half as much time again."""
BUDGET = 2_000
"""Cases whose page is in the file, worst first, of those that fail, fell or were not measured."""
UNCHANGED = 1_000
"""Cases up to which those with nothing to explain follow."""
UNCHANGED_OF_MANY = 200
"""The same in a run of more than `BUDGET` cases."""
PLAIN = 200
"""Failing cases that are readable without scripts."""
SECTIONS = (
    ("cases", "Cases"),
    ("heat", "Layers"),
    ("metrics", "Metrics"),
    ("speed", "Speed"),
    ("judge", "Judge"),
    ("history", "History"),
    ("config", "Configuration"),
)
KEYS = (
    ("/", "filter"),
    ("j k", "next, previous row"),
    ("Enter", "open"),
    ("Esc", "back"),
    ("n p", "next, previous case of the filter"),
    ("y", "copy link"),
    ("r", "copy the command that runs the case again"),
    ("m", "copy as Markdown"),
    ("s", "copy as a draft case"),
    ("← →", "answers of the trials; of a single one, the cases"),
    ("?", "these keys"),
)


class Chip(NamedTuple):
    """A filter that a click applies."""

    label: str
    query: str
    cases: int
    """The number of cases that it finds."""


BLOCKS = '<script type="text/plain" id="blocks">'


@dataclass(frozen=True, kw_only=True)
class ReportStart:
    """What the templates of the first screen and of the list of cases get."""

    page: PageRun
    """The run with the data of its report."""
    sections: Sequence[tuple[str, str]] = SECTIONS
    """The sections of the report: their ids and titles."""
    about: str
    """Description, system, branch and commit, and the time of the run."""
    total: int
    """The number of cases."""
    one_sided: Mapping[str, str] = field(default_factory=lambda: ONE_SIDED)
    """The lists of a comparison that name cases of one side, with their titles."""
    first: FirstScreen
    """The first screen."""
    chips: Sequence[Chip]
    """The filters that a click applies."""
    failing: Sequence[ListedCase]
    """The failing cases that are readable without scripts, the worst first."""
    failing_total: int
    """The number of all failing cases."""
    compare_with: str = ""
    """The address at which this run is compared with another one, or that can be chosen; '' in a file."""
    compare_words: str = "choose a run to compare with"
    """The words of the link to it."""
    audit: str = ""
    """The address of the dataset's audit; '' in a file, and for a run without a dataset."""


@dataclass(frozen=True, kw_only=True)
class ReportContext(ReportStart):
    """What the template of the whole report gets."""

    policy: str
    """The content security policy."""
    style: Markup
    """The style sheet."""
    script: Markup
    """The script."""
    version: str
    """The version of this package."""
    keys: Sequence[tuple[str, str]] = KEYS
    """The keys, with their meanings."""
    bodied: int
    """The number of cases whose page is in the file."""
    parts: Sections
    """The sections below the list of cases."""


def packed(value: Any) -> str:
    """Compress a text, or a value as JSON."""
    data = value.encode() if isinstance(value, str) else to_json(value)
    return b64encode(zlib.compress(data, LEVEL)).decode("ascii")


def report_html(page: PageRun, *, budget: int | None = BUDGET) -> str:
    """Return the HTML report; `budget` None embeds the page of every case."""
    return "".join(report_parts(page, budget=budget))


def report_parts(page: PageRun, *, budget: int | None = BUDGET) -> Sequence[str]:
    """Return the HTML report as texts to be written one after the other: each copy of all takes 2 MB for 1,000 cases.

    budget  as for `report_html`
    """
    blocks, bodied = _blocks(page, budget)
    context = ReportContext(
        **variables(page_start(page)),
        policy=policy(),
        style=style(),
        script=script(),
        version=version("pytest-rageval"),
        bodied=bodied,
        parts=report_sections(page),
    )
    html = rendered("page.html", **variables(context))
    before, place, after = html.rpartition(BLOCKS)
    return [before, place, *blocks, after]


def page_start(page: PageRun) -> ReportStart:
    """Return the content of the first screen and of the list of cases."""
    failing = [case for case in page.cases if case.is_failing or case.outcome == "xfailed"]
    return ReportStart(
        page=page,
        about=_about(page),
        total=len(page.cases),
        first=first_screen(page),
        chips=_chips(page),
        failing=failing[:PLAIN],
        failing_total=len(failing),
    )


def _about(page: PageRun) -> str:
    """Return description, target, branch and commit (`main 1a2b3c4 with changes`) and the time."""
    parts = [page.metrics.get("description")]
    target = page.config.get("target")
    if isinstance(target, str):
        parts.append(target)
    project = page.config.get("project")
    if isinstance(project, Mapping):
        parts.append(_commit_words(project))
    ended = str(page.metrics["volatile"].get("timestamp") or "")
    parts.append(ended[:16].replace("T", " "))
    return " · ".join(str(part) for part in parts if part)


def _commit_words(project: Mapping[str, Any]) -> str:
    words = [str(project.get("branch") or "")]
    commit = str(project.get("commit") or "")
    words.append(commit[:7] or "before the first commit")
    if project.get("is_changed"):
        words.append("with changes")
    return " ".join(filter(None, words))


# ── data ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _blocks(page: PageRun, budget: int | None) -> tuple[list[str], int]:
    """Return the compressed blocks, a line each, the index first; and the number of cases that have a page."""
    lines = [""]

    def add(value: Any) -> int:
        lines.append(f"\n{packed(value)}")
        return len(lines) - 1

    cases = page.cases
    rendered_cases = fragments(page, cases[: _bodied(cases, budget)])
    bodies = []
    bodied = 0
    # The views and pages of one block at a time are in memory.
    while block := list(islice(rendered_cases, BODIES)):
        bodies.append(add(block))
        bodied += len(block)
    texts = [add(_listed_text(cases[start : start + TEXTS])) for start in range(0, len(cases), TEXTS)]
    scores = {name: add(all_rounded(values)) for name, values in page.listed.scores.items()}
    falls = {name: add([fall.number for fall in fallen]) for name, fallen in page.falls.items()}
    index = case_columns(page) | {
        "bodies": bodies,
        "texts": texts,
        "scores": scores,
        "falls": falls,
        "perBody": BODIES,
        "perTexts": TEXTS,
        "bodied": bodied,
        "project": _project_key(page),
    }
    lines[0] = packed(index)
    return lines, bodied


def _project_key(page: PageRun) -> str:
    """Return the key under which the browser remembers the last filter."""
    target = str(page.config.get("target") or "")
    files = sorted({case.file or case.key for case in page.cases})
    return "|".join([target, *files[:3]])


def _bodied(cases: Sequence[ListedCase], budget: int | None) -> int:
    """Return how many of the cases, worst first, have their page in the file."""
    if budget is None:
        return len(cases)
    notable = sum(case.rank < 5 or case.drop < 0 for case in cases[:budget])
    unchanged = UNCHANGED if len(cases) <= BUDGET else UNCHANGED_OF_MANY
    return max(notable, min(budget, unchanged))


def _listed_text(cases: Sequence[ListedCase]) -> str:
    """Return ids, questions, answers, reasons and places as one text for visible rows and the search.

    Each case follows a NUL, with a field on each line.
    """
    lines: list[str] = []
    for case in cases:
        lines += (
            case.id.replace("\n", " "),
            on_one_line(case.question),
            on_one_line(case.answer),
            on_one_line(case.why, WHY),
            case.place.replace("\n", " "),
        )
    shown = printable("\n".join(lines)).split("\n")
    blocks = ["\n".join(shown[start : start + 5]) for start in range(0, len(shown), 5)]
    return "\0".join(blocks)


def fragments(page: PageRun, cases: Sequence[ListedCase]) -> Iterator[str]:
    """Yield the rendered page of each of these cases: '' for one without a record, none if no records are kept."""
    case_html = macro("case.html", "case")
    for view in case_views(page, cases):
        yield case_html(view) if view else ""


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _chips(page: PageRun) -> list[Chip]:
    """Return the filters that find a case, and the one for all cases."""
    outcomes = Counter(map(attrgetter("outcome"), page.cases))
    changes = Counter(map(attrgetter("change"), page.cases))
    different = sum(case.answer_change == "different" for case in page.cases)
    present = [name for name in ("failed", "error", "xfailed") if outcomes[name]]
    failing = sum(outcomes[name] for name in present)
    chips = [
        Chip("newly failing", "changed:worse", changes["worse"]),
        Chip("failing", f"outcome:{','.join(present)}", failing),
        Chip("different answers", "answer:different", different),
        Chip("errors", "outcome:error", outcomes["error"]),
        Chip("flaky", f"flaky:{FLAKY}", sum(case.flaky == FLAKY for case in page.cases)),
        Chip("known", "outcome:xfailed", outcomes["xfailed"]),
        Chip("fixed", "changed:fixed", changes["fixed"]),
    ]
    found = [chip for chip in chips if chip.cases]
    return [*found, Chip("all", "", len(page.cases))]
