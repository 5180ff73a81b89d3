"""Seals of version files: the hash of what was written, by which a file that was changed afterwards is known."""

from __future__ import annotations

import hashlib
import re

_SEAL = re.compile(rb"# rageval version, sha256 ([0-9a-f]{64})\b[^\r\n]*\r?\n")
_REMARK = "do not edit: save a new version in its place"


def sealed_text(text: str) -> str:
    """The text of a TOML file with its seal as the first line."""
    return f"# rageval version, sha256 {text_hash(text.encode())}; {_REMARK}\n{text}"


def seal_problem(content: bytes) -> str | None:
    """What is wrong with a sealed text, as the end of a sentence; None where it is as it was written."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    seal = _SEAL.match(content)
    if seal is None:
        return NO_SEAL
    return None if text_hash(content[seal.end() :]) == seal[1].decode() else CHANGED


def text_hash(content: bytes) -> str:
    """SHA-256 in hex digits. A line end is LF however git checked the file out."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


NO_SEAL = "was not saved by rageval web: it has no seal, so nobody can tell whether it was changed"
CHANGED = "was changed after it was saved: restore it from git or a backup, or save it as a new version"
