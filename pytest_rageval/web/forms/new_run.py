"""The form that starts a run."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BaseModel, Field

from pytest_rageval.io.expected import Expects
from pytest_rageval.text import printable
from pytest_rageval.web.jobs.job_files import Source
from pytest_rageval.web.versions.version_folder import is_slug

LONGEST_DESCRIPTION = 500


class VersionChoice(NamedTuple):
    """A version that a form names as `shop-bot/3`."""

    slug: str
    number: int

    def __str__(self) -> str:
        return f"{self.slug}/{self.number}"


def version_choice(written: str) -> VersionChoice | None:
    """The version that is named; None where the text names none."""
    slug, _, number = written.partition("/")
    if not is_slug(slug) or not (number.isascii() and number.isdecimal()) or len(number) > 5:
        return None
    return VersionChoice(slug, int(number))


def _choice(written: str) -> str:
    if version_choice(written) is None:
        raise ValueError("names no version; choose one of the list")
    return written


Choice = Annotated[str, AfterValidator(_choice), Expects("one of the list")]


class NewRunForm(BaseModel):
    """What is run: an agent's version on a dataset's, with live or uploaded answers.

    shown   the choice of which the page said what it takes; "" where no page did
    action  look: only show what the choice takes

    The description becomes an argument of a command, which may hold no NUL.
    """

    agent: Choice
    dataset: Choice
    source: Source = "connector"
    description: Annotated[str, AfterValidator(printable)] = Field("", max_length=LONGEST_DESCRIPTION)
    shown: str = ""
    action: Literal["look", "start"] = "start"

    @property
    def is_as_shown(self) -> bool:
        """Whether the page has said what this very choice takes."""
        return self.shown in ("", f"{self.agent} {self.dataset} {self.source}")
