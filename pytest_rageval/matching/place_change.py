"""The change of place from a gold to a passage, in words that all passages of a moved folder share."""

from __future__ import annotations

from pytest_rageval.text import cut

TOP = "the top folder"
LONGEST = 200
"""Characters that are shown: paths come from the system."""


def place_change(gold_path: str | None, path: str | None) -> str:
    """Return `in docs/new, not in docs` if the folder differs, `as b.md, not a.md` if the name of the file does."""
    if path is None:
        return "without a path"
    if gold_path is None:
        return cut(f"as {path}", LONGEST)
    was = gold_path.replace("\\", "/").strip("/").split("/")
    now = path.replace("\\", "/").strip("/").split("/")
    if was == now:
        return cut(f"under another heading of {path}", LONGEST)
    if was[-1] != now[-1]:
        return cut(f"as {path}, not {gold_path}", LONGEST)
    while was and now and was[-1] == now[-1]:
        was.pop()
        now.pop()
    return cut(f"in {'/'.join(now) or TOP}, not in {'/'.join(was) or TOP}", LONGEST)
