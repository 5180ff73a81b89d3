r"""JSON that people read: on a screen, in a report, in a diff.

Values are unchanged; characters that can affect a terminal, a CI log or the text direction are escaped (`\u009b`).
"""

from __future__ import annotations

import json
import re
from typing import Any

# JSON escapes control characters below the space, but not DEL, C1, line and paragraph separators, direction marks
# and lone surrogates. `##[`, `##vso[` and `##teamcity[` are commands of CI services anywhere in a line.
_HARMFUL = re.compile(
    r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]|#(?=#[a-z]{0,20}\[)", re.IGNORECASE
)
_COMMAND = re.compile(r"##[a-zA-Z]{0,20}\[")
"""In every text with a CI command."""
_ON_ONE_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def json_text(value: Any, indent: int | None = 1, *, sort_keys: bool = False, default: Any = None) -> str:
    """Encode a value as strict JSON for people; ValueError for NaN and the like. `default` as for `json.dumps`."""
    if indent is None and not sort_keys and default is None:
        text = _ON_ONE_LINE.encode(value)
    else:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, indent=indent, sort_keys=sort_keys, default=default
        )
    return harmless(text)


def harmless(text: str) -> str:
    """Escape the harmful characters of JSON text."""
    # The only harmful ASCII character that JSON leaves as it is is DEL; for other texts this halves the pattern's time.
    # Texts that were cut end with an ellipsis.
    is_harmless = "\x7f" not in text if text.replace("…", "").isascii() else text.isprintable()
    if is_harmless and _COMMAND.search(text) is None:
        return text
    return _HARMFUL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
