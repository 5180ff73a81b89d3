"""How large a request's body may be and how slowly it may come, told while it is read."""

from __future__ import annotations

import asyncio
import time

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from pytest_rageval.numbers import short
from pytest_rageval.web.settings import MEGABYTE, WebLimits

SLOWEST = 1_000
"""Bytes a second that a body must come with on the whole: a byte now and then would hold a connection for days."""
CLOSE = {"Connection": "close"}
"""The rest of the body is not read, so that nothing else can be on this connection."""


def bounded_receive(receive: Receive, headers: Headers, limits: WebLimits) -> Receive:
    """`receive` that ends a body that is too large (413) or comes too slowly (408)."""
    is_upload = headers.get("content-type", "").lower().startswith("multipart/form-data")
    most = limits.upload_bytes if is_upload else limits.form_bytes
    announced = headers.get("content-length", "0")
    size = separators = 0
    is_over = False
    began: float | None = None

    async def bounded() -> Message:
        nonlocal size, separators, is_over, began
        if is_over:  # from now on it is waited for the end of the connection
            return await receive()
        if announced.isdecimal() and int(announced) > most:
            raise _too_large(most)
        began = began or time.monotonic()
        left = began + limits.body_seconds + size / SLOWEST - time.monotonic()
        try:
            message = await asyncio.wait_for(receive(), max(0.0, min(left, limits.body_seconds)))
        except TimeoutError:
            raise HTTPException(408, f"This came too slowly: {size:,} bytes until now.", CLOSE) from None
        is_over = not message.get("more_body", False)
        piece = message.get("body", b"")
        size += len(piece)
        if size > most:
            raise _too_large(most)
        separators += piece.count(b"&")  # the reader counts no blank fields, and takes seconds for millions of them
        if not is_upload and separators > limits.fields:
            raise HTTPException(400, f"This form has more than {limits.fields:,} fields.", CLOSE)
        return message

    return bounded


def _too_large(most: int) -> HTTPException:
    return HTTPException(413, f"This is larger than {short(most / MEGABYTE)} MB, the most that is taken.", CLOSE)
