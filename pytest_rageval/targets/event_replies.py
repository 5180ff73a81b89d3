"""Replies of servers that send events where one JSON object is expected."""

from __future__ import annotations

EVENT_FIELDS = ("data:", "event:", ":")
"""The beginnings of a body of server-sent events."""


def remedy_for_events(body: str) -> str:
    """Return what to do about a body of server-sent events; empty for any other body."""
    if not body.lstrip().startswith(EVENT_FIELDS):
        return ""
    return (
        "the response is a stream of events, not JSON; send `stream = false` in the request of the mapping, or ask the "
        "server with a Python function"
    )
