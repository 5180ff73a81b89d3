"""Values that only this app can have made: sessions, tokens of forms and logins, derived from one key on disk."""

from __future__ import annotations

import hmac
import os
import secrets
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pytest_rageval.errors import SettingsError

KEY_FILE = "web.key"
KEY_BYTES = 32
NOT_FOR_GIT = """# Versions of agents and datasets are for git; the app's key, its index and what it works on are not.
/web.key
/open-*.html
/rageval.sqlite*
/jobs/
/uploads/
"""


@dataclass(frozen=True)
class Seal:
    """A key that outlives a restart, so that a form that stood open then can still be sent."""

    key: bytes

    def of(self, purpose: str, *parts: str) -> str:
        """What belongs to these parts, in hexadecimal digits; nobody without the key can tell it."""
        text = "\0".join((purpose, *parts))
        return hmac.new(self.key, text.encode(), sha256).hexdigest()

    def holds(self, given: str, purpose: str, *parts: str) -> bool:
        """Is it what belongs to these parts? Takes as long whatever was given."""
        return hmac.compare_digest(given.encode(), self.of(purpose, *parts).encode())


def open_seal(data: Path) -> Seal:
    """The key of this data folder, made where there is none; only its owner can read it, and git passes it over."""
    path = data / KEY_FILE
    try:
        data.mkdir(parents=True, exist_ok=True)
        ignore = data / ".gitignore"
        if not ignore.exists():
            ignore.write_text(NOT_FOR_GIT, encoding="utf-8")
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            key = path.read_bytes()
        else:
            key = secrets.token_bytes(KEY_BYTES)
            with os.fdopen(handle, "wb") as file:
                file.write(key)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be kept: {error.strerror}; name another folder with --data") from None
    if len(key) != KEY_BYTES:
        raise SettingsError(f"{path}: {len(key)} bytes, expected {KEY_BYTES}; remove it, and a new one is made")
    return Seal(key)
