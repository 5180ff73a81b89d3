"""What the templates of runs get: a report with its list of cases, two runs, an unfinished run, a case, a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_rageval.comparison.listed_case import ListedCase
from pytest_rageval.config.tables import Origin
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.render.html.report_page import KEYS, ReportStart
from pytest_rageval.render.html.sections import Sections
from pytest_rageval.runs.ratings import Rating
from pytest_rageval.text import printable
from pytest_rageval.views.case_content import CaseView
from pytest_rageval.web.jobs.job import JobStatus
from pytest_rageval.web.page_context import PageContext
from pytest_rageval.web.rendering import path_to
from pytest_rageval.web.run_cases import CasePage, Neighbours
from pytest_rageval.web.run_list import Rows


@dataclass(frozen=True, kw_only=True)
class ReportInBrowser(PageContext, ReportStart):
    """What the templates of a finished run get besides the first screen and the list of cases."""

    run_id: str
    """The id of the run, as it is shown."""
    head: Origin
    """The versions of agent and dataset that the run is made from."""
    description: str | None
    """The description of the run; None without one."""
    keys: Sequence[tuple[str, str]] = KEYS
    """The keys, with their meanings."""
    against: str
    """The id of the run that was chosen to compare with; '' if none was."""
    parts: Sections | None
    """The sections below the list of cases; None if they come later."""
    sections_at: str | None
    """The address of sections that come later; None if they are here."""


@dataclass(frozen=True, kw_only=True)
class RunPage(ReportInBrowser):
    """A finished run."""

    template = "run.html"
    listed: CasePage
    """The cases of this page."""
    agent_versions: Sequence[tuple[str, str]]
    """The last run of each version of the agent on these cases, with the names of the versions."""
    log: Sequence[str]
    """The last lines that the run printed."""
    job: str | None
    """The id of the job that can go on with a partial run; None if none can."""


@dataclass(frozen=True, kw_only=True)
class ComparePage(ReportInBrowser):
    """Two runs side by side."""

    template = "compare.html"
    listed: CasePage
    """The cases of this page."""
    agent_versions: Sequence[tuple[str, str]]
    """The last run of each version of the agent on these cases, with the names of the versions."""


@dataclass(frozen=True, kw_only=True)
class RunSectionsPage(ReportInBrowser):
    """The sections of a large run, which a script puts below its cases."""

    template = "run_sections.html"


@dataclass(frozen=True, kw_only=True)
class UnfinishedRunPage(PageContext):
    """A run without aggregates, as far as it is recorded."""

    template = "unfinished_run.html"
    run_id: str
    """The id of the run, as it is shown."""
    state: str
    """interrupted, being written, or another state of a run."""
    problems: Sequence[str]
    """Why its files cannot be read."""
    files: Sequence[tuple[str, bool, str]]
    """The files of a run: the name, whether it is there, what it holds."""
    listed: CasePage | None
    """The recorded cases of this page; None if none can be read."""
    log: Sequence[str]
    """The last lines that the run printed."""
    job: str | None
    """The id of the job that can go on with it; None if none can."""
    has_head: bool
    """The configuration can be read, and with it what the run is made from."""
    head: Origin | None
    """The versions of agent and dataset that the run is made from; None if they are not known."""
    description: str | None = None
    """The description of the run, which is not known before its end."""
    about: str = ""
    """What the report says of the run, which has none."""
    sections: Sequence[tuple[str, str]]
    """The sections of the page: their ids and titles."""
    keys: Sequence[tuple[str, str]] = KEYS
    """The keys, with their meanings."""
    page: PageRun | None = None
    """The report, which the run has not."""
    against: str = ""
    """The run that it is compared with, which there is not."""
    agent_versions: Sequence[tuple[str, str]] = ()
    """The runs of other versions, which are not offered."""


@dataclass(frozen=True, kw_only=True)
class CompareChoicePage(PageContext):
    """The form that selects two runs."""

    template = "compare_choice.html"
    lines: Rows
    """The runs that can be chosen."""
    chosen: Mapping[str, str]
    """The chosen runs: `a`, `b`."""
    problem: str
    """Why the two cannot be compared; '' if nothing is wrong."""


@dataclass(frozen=True, kw_only=True)
class JobPage(PageContext):
    """A job: what it runs, how far it is."""

    template = "job.html"
    job_status: JobStatus
    """The state of the job."""
    log: Sequence[str]
    """The last lines that the run printed."""


class CaseLinks(NamedTuple):
    """The parameters of a case's page, and the addresses to which they lead."""

    run_id: str
    key: str
    q: str
    sort: str
    against: str = ""

    def case(self, key: str | None = None) -> str:
        """Return the address of a case in the same list: of this one, or of that with the `key`."""
        asked = {"q": self.q, "sort": self.sort, "against": self.against}
        return path_to("runs", self.run_id, "cases", printable(key or self.key), **asked)

    @property
    def cases(self) -> str:
        """Return the address of the list."""
        if self.against:
            return path_to("compare", a=self.against, b=self.run_id, q=self.q, sort=self.sort) + "#cases"
        return path_to("runs", self.run_id, q=self.q, sort=self.sort) + "#cases"


@dataclass(frozen=True, kw_only=True)
class CaseOfRunPage(PageContext):
    """A case of a run, with its neighbours in the list and what people said of its answer."""

    template = "case_page.html"
    run_id: str
    """The run of the case, for the addresses of its other turns."""
    against: str
    """The run that it is compared with; '' without one."""
    case: ListedCase
    """The case as the list has it."""
    c: CaseView | None
    """The case as every face shows it; None if the run keeps no record of it."""
    links: CaseLinks
    """The addresses of the list and of other cases."""
    neighbours: Neighbours
    """The cases before and after it in the list."""
    head: Origin
    """The versions of agent and dataset that the run is made from."""
    keys: Sequence[tuple[str, str]]
    """The keys, with their meanings."""
    rating: Rating
    """The thumb and the note; blank without one."""
    is_rating_old: bool
    """The thumb was given to another answer."""
    rating_problem: str
    """Why the ratings of the run cannot be read; '' if they can."""
    longest_note: int
    """The number of characters that a note may have."""
