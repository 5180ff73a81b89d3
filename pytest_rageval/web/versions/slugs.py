"""Slugs: the names under which agents and datasets are kept, made from what a person typed."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.messages import shown_value

LONGEST_SLUG = 60
_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?")
_RESERVED = re.compile(r"con|prn|aux|nul|new|uploads|(?:com|lpt)[0-9]")
"""Names that Windows keeps for devices, and words of our own addresses."""


def slug_of(name: str) -> str:
    """The slug of a name: `Shop Bot (EU)` → `shop-bot-eu`.

    A name in another script keeps what is left of it in ASCII, and a hash, so that two names are two slugs.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[: LONGEST_SLUG - 9].strip("-")
    lost = any(character.isalnum() and not character.isascii() for character in unicodedata.normalize("NFKC", name))
    if slug and not lost and not _RESERVED.fullmatch(slug):
        return slug
    digest = hashlib.sha256(unicodedata.normalize("NFC", name).encode()).hexdigest()[:8]
    return f"{slug}-{digest}" if slug else f"n-{digest}"


def is_slug(text: str) -> bool:
    """Whether a text is a slug, and so may be a folder's name and a part of an address."""
    return _SLUG.fullmatch(text) is not None and _RESERVED.fullmatch(text) is None


def checked_slug(text: str) -> str:
    """The text, which is a slug; SettingsError where it is none: it never becomes a path then."""
    if not is_slug(text):
        raise SettingsError(f"{shown_value(text)} is not a name here; names are lower-case letters, digits and hyphens")
    return text
