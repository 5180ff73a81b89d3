"""Locations of a project's configuration, and its globs of case files. Standard library only."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_rageval.errors import SettingsError

OWN_FILE, SHARED_FILE = "rageval.toml", "pyproject.toml"
"""The configuration's possible files: its own file, or `[tool.rageval]` in pyproject.toml."""
AGENT = "agent"
"""The table in which an agent version of the web app describes itself; runs ignore it."""
DEFAULT_CASES = ("evalcases/**/*.jsonl", "evalcases/**/*.csv", "*.eval.jsonl")


def case_globs(root: Path) -> tuple[str, ...]:
    """Return the globs of case files; the defaults if the table has none or is invalid (reported later)."""
    globs = _written(root, "cases")
    if isinstance(globs, list | tuple) and all(isinstance(glob, str) for glob in globs):
        return tuple(globs)
    return DEFAULT_CASES


def reports_of(root: Path) -> str:
    """Return the reports folder: from environment, table or default, which replaces invalid ones (reported later)."""
    if written := os.environ.get("RAGEVAL_REPORTS"):
        return written
    reports = _written(root, "reports")
    return reports if isinstance(reports, str) else "reports"


def _written(root: Path, key: str) -> Any:
    """Return the value in the table; None if it is missing or the table invalid."""
    try:
        return read_table(root)[1].get(key) if has_table(root) else None
    except SettingsError:
        return None


def has_table(root: Path) -> bool:
    """Return True if this project configures the plugin. Cheap: parses TOML only if the words occur."""
    if (root / OWN_FILE).is_file():
        return True
    try:
        return b"tool.rageval" in (root / SHARED_FILE).read_bytes()
    except OSError:
        return False


def may_have_cases(root: Path, arguments: Sequence[str]) -> bool:
    """Return True if a project or a command line suggests cases; decided before any search."""
    if has_table(root):
        return True
    for argument in arguments:
        word = argument.partition("::")[0]
        if "rageval-" in word or word.lower().endswith((".jsonl", ".csv")):
            return True
    return (root / "evalcases").is_dir() or any(root.glob(DEFAULT_CASES[-1]))


def read_table(root: Path) -> tuple[str, dict[str, Any]]:
    """Return the place and content of the configuration table; raise SettingsError if both files have one."""
    own = _parsed(root / OWN_FILE)
    if own is not None:
        if isinstance(own.get(AGENT), dict):
            del own[AGENT]
        if "tool" in own:
            _check_prefixes(own)
        else:  # its own file may hold the table without its name
            own = {"tool": {"rageval": own}}
    tables: dict[str, Any] = {}
    shared = _parsed(root / SHARED_FILE)
    _check_names_of_tables(SHARED_FILE, shared or {})
    for name, content in ((OWN_FILE, own), (SHARED_FILE, shared)):
        tool = {} if content is None else content.get("tool", {})
        if isinstance(tool, dict) and "rageval" in tool:
            tables[name] = tool["rageval"]
    if len(tables) == 2:
        raise SettingsError("rageval.toml and pyproject.toml [tool.rageval] both configure this; keep one of them")
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise SettingsError(f"{name}: [tool.rageval] is {table!r}, expected a table")
        return (name if name == OWN_FILE else f"{name} [tool.rageval]"), table
    return "pyproject.toml [tool.rageval]", {}


def place_of_table(root: Path) -> str:
    """Return the file that configures the project, as messages name it."""
    return OWN_FILE if (root / OWN_FILE).is_file() else f"{SHARED_FILE} [tool.rageval]"


def _check_prefixes(content: Mapping[str, Any]) -> None:
    """Raise SettingsError if rageval.toml has tables below `tool` and keys outside of it; only one of both would count.

    Lines for pyproject.toml that are pasted below `target = …` would otherwise turn off that target.
    """
    _check_names_of_tables(OWN_FILE, content)
    others = [name for name in content if name != "tool"]
    if not others:
        return
    tool = content["tool"]
    ours = tool.get("rageval", {}) if isinstance(tool, dict) else {}
    keys = ours if isinstance(ours, dict) else {}
    problems: list[str] = []
    has_values = False
    for name, value in keys.items():
        if isinstance(value, dict):
            problems.append(_prefixed("[", name, "]"))
        elif _is_list_of_tables(value):
            problems.append(_prefixed("[[", name, "]]"))
        else:
            has_values = True
    if has_values or not problems:
        remedy = f"leave out the line, and write its keys next to {others[0]!r}, above the first table"
        problems.append(f"{OWN_FILE}: [tool.rageval] next to keys without it: {remedy}")
    raise SettingsError(*problems)


def _prefixed(opening: str, name: str, closing: str) -> str:
    written = f"{opening}tool.rageval.{name}{closing}"
    return f"{OWN_FILE}: {written}: leave out the prefix in this file: {opening}{name}{closing}"


def _is_list_of_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _check_names_of_tables(file: str, content: Mapping[str, Any]) -> None:
    """Raise SettingsError for a table whose name is nearly ours, or stands outside of [tool]: nothing would read it."""
    tool = content.get("tool", {})
    in_tool = list(tool) if isinstance(tool, dict) else []
    wrong = [f"tool.{name}" for name in in_tool if name != "rageval" and _is_like_ours(name)]
    wrong += [name for name in content if _is_like_ours(name)]
    if wrong:
        raise SettingsError(f"{file}: [{wrong[0]}] means nothing; the table is [tool.rageval]")


def _is_like_ours(name: str) -> bool:
    """Return True for `rageval` with a letter left out, doubled or swapped, in capitals, or as a part of a name."""
    plain = name.lower().replace("-", "_").removeprefix("pytest_")
    ours = "rageval"
    slips = {ours[:at] + ours[at + 1 :] for at in range(len(ours))}
    slips |= {ours[:at] + ours[at] + ours[at:] for at in range(len(ours))}
    slips |= {ours[:at] + ours[at + 1] + ours[at] + ours[at + 2 :] for at in range(len(ours) - 1)}
    return plain in slips or plain.partition("_")[0] == ours


def _parsed(path: Path) -> dict[str, Any] | None:
    """Return the content of a TOML file, or None if it does not exist."""
    import tomllib  # here, because every test suite loads this module and few have a table

    if not path.is_file():
        return None
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path.name}: not valid TOML: {error}") from None
    except OSError as error:
        raise SettingsError(f"{path.name}: cannot be read: {error.strerror}") from None
