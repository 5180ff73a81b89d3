"""The forms of a dataset's working copy: begun, asked of other systems, saved."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from pytest_rageval.io.expected import Expects
from pytest_rageval.web.forms.new_run import version_choice
from pytest_rageval.web.forms.text_lengths import Note
from pytest_rageval.web.labelling.chunk_systems import DEMO, PROJECT

MOST_SYSTEMS = 8
"""Systems that are asked for one case: each is asked for 20 chunks."""


def _system(written: str) -> str:
    if written not in (PROJECT, DEMO) and version_choice(written) is None:
        raise ValueError("names no system; choose one of the list")
    return written


SystemName = Annotated[str, AfterValidator(_system), Expects("one of the list")]


class SystemsForm(BaseModel):
    """Who gives the chunks; nobody: the notes alone are searched."""

    systems: list[SystemName] = Field(default_factory=list, max_length=MOST_SYSTEMS)


class BeginForm(SystemsForm):
    """A working copy of `version`, which the page showed as the newest."""

    version: int = Field(ge=1)


class SaveCopyForm(BaseModel):
    """The working copy as the version after `based_on`, which the page showed as the newest."""

    note: Note = ""
    based_on: int = Field(ge=1)
