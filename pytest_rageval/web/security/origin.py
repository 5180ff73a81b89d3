"""Where a request that writes comes from: a page of the app itself, as the browser says."""

from __future__ import annotations

from urllib.parse import urlsplit

SAFE_METHODS = frozenset({"GET", "HEAD"})


def is_own_origin(scheme: str, host: str, origin: str | None, fetch_site: str | None) -> bool:
    """May a request with these headers write? Both may be absent (no browser sends them so); neither may be foreign."""
    if fetch_site is not None and fetch_site != "same-origin":
        return False
    if origin is None:
        return True
    try:
        parts = urlsplit(origin)
        is_bare = not (parts.path or parts.query or parts.fragment or parts.username)
    except ValueError:
        return False
    # A proxy in front may speak https where we speak http: a page of the same host is ours either way.
    return is_bare and parts.scheme in {scheme, "https"} and parts.netloc.lower() == host.lower()
