"""How large a request's body may be and how slowly it may come, told while it is read."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from pytest_rageval.numbers import short
from pytest_rageval.web.settings import MEGABYTE, WebLimits

CLOSE = {"Connection": "close"}
"""The rest of the body is not read, so that nothing else can be on this connection."""


def bounded_receive(receive: Receive, headers: Headers, limits: WebLimits) -> Receive:
    """`receive` that ends a body that is too large (413) or comes too slowly (408)."""
    is_upload = headers.get("content-type", "").lower().startswith("multipart/form-data")
    most = limits.upload_bytes if is_upload else limits.form_bytes
    announced = headers.get("content-length", "0")
    size = 0
    is_over = False

    async def bounded() -> Message:
        nonlocal size, is_over
        if is_over:  # from now on it is waited for the end of the connection
            return await receive()
        if announced.isdecimal() and int(announced) > most:
            raise _too_large(most)
        try:
            message = await asyncio.wait_for(receive(), limits.body_seconds)
        except TimeoutError:
            raise HTTPException(408, f"Nothing more came for {limits.body_seconds:g} seconds.", CLOSE) from None
        is_over = not message.get("more_body", False)
        size += len(message.get("body", b""))
        if size > most:
            raise _too_large(most)
        return message

    return bounded


def _too_large(most: int) -> HTTPException:
    return HTTPException(413, f"This is larger than {short(most / MEGABYTE)} MB, the most that is taken.", CLOSE)
