"""Headers of every response: nothing from elsewhere, nothing inline, in nobody's frame, kept by nobody."""

from __future__ import annotations

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Nothing is told to others; with `no-referrer` browsers would send `Origin: null` with our own forms too.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
KEPT_BY_NOBODY = "private, no-cache"
"""A page is asked for anew each time; going back may show it again."""


def with_headers(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of a response, and ours where it has not set them itself."""
    names = {name.lower() for name, _ in headers}
    ours = HEADERS | {"Cache-Control": KEPT_BY_NOBODY}
    added = ((name.lower().encode(), value.encode()) for name, value in ours.items())
    return [*headers, *(pair for pair in added if pair[0] not in names)]
