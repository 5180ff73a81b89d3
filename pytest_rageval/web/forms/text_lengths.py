"""Texts of forms by how long they may be, with what is said where one is longer."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pytest_rageval.io.expected import Expects
from pytest_rageval.web.versions.agent import LONGEST_NOTE, LONGEST_PROMPT

Title = Annotated[str, Field(max_length=80), Expects("at most 80 characters")]
OneLine = Annotated[str, Field(max_length=500), Expects("at most 500 characters")]
Note = Annotated[str, Field(max_length=LONGEST_NOTE), Expects(f"at most {LONGEST_NOTE:,} characters")]
Address = Annotated[str, Field(max_length=2_000), Expects("at most 2,000 characters")]
Paragraphs = Annotated[str, Field(max_length=2_000), Expects("at most 2,000 characters")]
Prose = Annotated[str, Field(max_length=LONGEST_PROMPT), Expects(f"at most {LONGEST_PROMPT:,} characters")]
