"""The one list of names whose values are secrets, of variables, headers, options, parameters and fields."""

from __future__ import annotations

import re
from functools import lru_cache

_SECRET_WORD = re.compile(
    r"(password|passwd|passphrase|passcode|pass|passw|pwd|secret|token|credential|cred|jwt|dsn|auth|authorization|sk|pat"
    r"|bearer|webhook|cookie|signature|sig|key|apikey|sessionid|session)s?"
)
"""The last word of a name: `DB_PASSWORD_2`, `x-api-key`, `accountKey`."""
_GLUED = re.compile(
    r"(password|passwd|passphrase|secret|token|credential|cookie|sessid|sessionid|authorization"
    r"|(?<!public)(?<!foreign)(?<!primary)(?<!sort)(api|access|secret|private|account|auth|license)key)s?$"
)
"""The end of a name without word borders: `PGPASSWORD`, `secretkey`."""
_BEHIND = re.compile(r"access key id$|(secret|key) base$|webhooks? (url|uri)$|session id$")
_PUBLIC = re.compile(
    r"\b(public|primary|foreign|sort|partition|cache|case|idempotency|websocket) key$"
    r"|\b(max|min|num|n|prompt|completion|input|output|total|reasoning|stop|eos|bos|pad|unk|special) tokens?$"
    r"|\b(desktop|xdg|gdm) session( id)?$|^(old)?pwd$"
)
"""Endings that look secret and are not: names of columns, counts of tokens, folders, desktop sessions."""
_BORDERS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Check whether an environment variable, header, option, parameter or field of this name usually holds a secret."""
    words = [word.lower() for word in _BORDERS.split(name) if word]
    # `API_KEY_2` is the second of two keys.
    while len(words) > 1 and words[-1].isdecimal():
        words.pop()
    if not words:
        return False
    last = words[-1] = words[-1].rstrip("0123456789") or words[-1]
    phrase = " ".join(words)
    if _PUBLIC.search(phrase) is not None:
        return False
    is_word = _SECRET_WORD.fullmatch(last) is not None or _GLUED.search(last) is not None
    return is_word or _BEHIND.search(phrase) is not None


def is_secret_field(name: str) -> bool:
    """Check the name of a parameter or member, where `pwd` is a password and no folder."""
    return name in ("pwd", "Pwd") or is_secret_name(name)
