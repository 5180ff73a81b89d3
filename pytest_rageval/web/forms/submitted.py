"""A form as it was sent: read within limits, only from a page of the same session; texts by how long they may be."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from fastapi import Depends, Request
from pydantic import Field
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

from pytest_rageval.io.expected import Expects
from pytest_rageval.web.rendering import FORM_TOKEN
from pytest_rageval.web.security.session import BrowserSession
from pytest_rageval.web.site import site_of
from pytest_rageval.web.versions.agent import LONGEST_NOTE, LONGEST_PROMPT

KINDS = ("application/x-www-form-urlencoded", "multipart/form-data")
Title = Annotated[str, Field(max_length=80), Expects("at most 80 characters")]
OneLine = Annotated[str, Field(max_length=500), Expects("at most 500 characters")]
Note = Annotated[str, Field(max_length=LONGEST_NOTE), Expects(f"at most {LONGEST_NOTE:,} characters")]
Address = Annotated[str, Field(max_length=2_000), Expects("at most 2,000 characters")]
Paragraphs = Annotated[str, Field(max_length=2_000), Expects("at most 2,000 characters")]
Prose = Annotated[str, Field(max_length=LONGEST_PROMPT), Expects(f"at most {LONGEST_PROMPT:,} characters")]


async def submitted(request: Request) -> AsyncIterator[FormData]:
    """The fields and files of a POST, and nothing of any other; HTTPException where it must not be taken.

    The app asks this of every request, so that no route that writes can forget it.
    """
    if request.method != "POST":
        yield FormData()
        return
    kind, _, rest = request.headers.get("content-type", "").partition(";")
    if kind.strip().lower() not in KINDS:
        raise HTTPException(415, f"A form is sent as {' or '.join(KINDS)}.")
    if any(name == "charset" and value != "utf-8" for name, value in _parameters(rest)):
        raise HTTPException(415, "A form is sent in UTF-8.")
    limits = site_of(request).settings.limits
    form = await request.form(max_files=limits.files, max_fields=limits.fields, max_part_size=limits.field_bytes)
    try:
        session: BrowserSession = request.state.session
        given = form.get(FORM_TOKEN)
        if not session.is_form_token(given if isinstance(given, str) else ""):
            raise HTTPException(
                403, "This form is of another session: go back, load its page again, and send it once more."
            )
        yield form
    finally:
        await form.close()


def _parameters(written: str) -> Iterator[tuple[str, str]]:
    """Names and values behind the kind of a body, without their marks."""
    for parameter in written.lower().split(";"):
        name, _, value = parameter.partition("=")
        yield name.strip(" \t*"), value.strip(' \t"')


Submitted = Annotated[FormData, Depends(submitted)]
"""A parameter of a route that takes a form."""
