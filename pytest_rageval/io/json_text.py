r"""JSON that people read: on a screen, in a report, in a difference of two versions.

The same values as any JSON of them; what could steer a terminal, a log of a CI service or the eye stands as `\u009b`.
"""

from __future__ import annotations

import json
import re
from typing import Any

# JSON itself escapes control characters below the space, and none of DEL, C1, the separators of lines and paragraphs,
# marks of direction and lone surrogates. `##[` and `##vso[` are commands of Azure and GitHub anywhere in a line.
_HARMFUL = re.compile(
    r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]|#(?=#(?:vso)?\[)", re.IGNORECASE
)
_COMMAND = re.compile(r"##[\[vV]")
"""Is in every text in which `_HARMFUL` is and all of whose characters are harmless. A sixth of the time of a look for
each of the three: a record is full of headings."""
_ON_ONE_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def json_text(value: Any, indent: int | None = 1, *, sort_keys: bool = False, default: Any = None) -> str:
    """A value as strict JSON for people; NaN and the like are a ValueError. `default` as for `json.dumps`."""
    if indent is None and not sort_keys and default is None:
        text = _ON_ONE_LINE.encode(value)
    else:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, indent=indent, sort_keys=sort_keys, default=default
        )
    return _shown(text)


def spaced(compact: str) -> str:
    """What `json_text` makes, on one line, of the value that is written here without white space."""
    has_escapes = "\\" in compact
    if has_escapes:  # none of these controls stands in JSON as it is
        compact = compact.replace("\\\\", "\0").replace('\\"', "\1")
    parts = compact.split('"')
    # Of an uneven number of parts every other one is a string.
    parts[::2] = '"'.join(parts[::2]).replace(",", ", ").replace(":", ": ").split('"')
    text = '"'.join(parts)
    return _shown(text.replace("\1", '\\"').replace("\0", "\\\\") if has_escapes else text)


def _shown(text: str) -> str:
    # Of ASCII only DEL is harmful that JSON does not escape itself; of others this is half of the time of the pattern.
    # Texts that were cut end with an ellipsis.
    is_harmless = "\x7f" not in text if text.replace("…", "").isascii() else text.isprintable()
    if is_harmless and _COMMAND.search(text) is None:
        return text
    return _HARMFUL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
