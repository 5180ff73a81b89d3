"""Discovery of the case files below a folder. Runs in every test suite, so it imports nothing heavy."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

from pytest_rageval.config.files import DEFAULT_CASES

PRUNED = frozenset({"node_modules", "venv", ".venv", "__pycache__", "build", "dist"})
"""Folders never searched, like hidden ones and `*.egg-info`, unless a glob names them literally."""

NO_CASES = (".references.", ".answers.", ".drafts.", ".labels.", ".labels-")
"""Parts of the names of other files next to case files: references, drafts, labels not yet adopted."""
REFERENCES = ("references", "answers")
"""Names of files of references next to a file of questions."""
SUFFIXES = (".csv", ".jsonl")
"""Endings of case files, in small letters or capitals: spreadsheets on Windows write EXPORT.CSV."""
OTHER_ENDINGS = (".ndjson", ".json", ".yaml", ".yml", ".tsv", ".xlsx", ".parquet", ".gz", ".jsonl~")
"""Endings of files that may hold cases, and are not read."""
_TEXTS = (".json", ".yaml", ".yml")
"""Those of them that are often something else: they are looked into."""
_LONGEST_HEADER = 65_536


def find_case_files(root: Path, globs: Sequence[str], *, is_named: bool = False) -> list[Path]:
    """Return all case files below `root`, sorted.

    A glob is relative to `root`; one without a slash matches base names at any depth; `**` matches any number of
    folders. Hidden files match only if the glob's last part begins with a dot. Symbolic links are followed; each folder
    and each file counts once, under its own name if it has one. What cannot be read and may hold cases is among them: a
    link that leads nowhere, a folder without permission; `dead_end` says why when it is loaded. Such a folder counts
    only if a glob names it, or a folder above or below it. With `is_named`, `root` was named for its cases: all count.
    """
    rule = _Rule.of(tuple(globs))
    may_lose = (lambda _folder: True) if is_named else rule.names_folder
    paths = [root / relative for relative in _files(root, rule, may_lose)]
    if any(path.is_symlink() for path in paths):
        ordered = sorted(paths, key=lambda path: (path.is_symlink(), path))
        # In reverse, so that of one file's names the first one wins: its own before those of links.
        paths = [*{os.path.realpath(path): path for path in reversed(ordered)}.values()]
    return sorted(path for path in paths if not is_reference_file(path))


def case_files_of(root: Path, globs: Sequence[str], reports: Path) -> list[Path]:
    """Return the case files of a project, without those below its reports, which are copies."""
    return [path for path in find_case_files(root, globs) if not path.is_relative_to(reports)]


def has_case_suffix(path: Path) -> bool:
    """Return True if the ending of this file is that of case files."""
    return path.suffix.lower() in SUFFIXES


def unread_neighbours(files: Sequence[Path]) -> list[Path]:
    """Return the files in the folders of these case files that look like cases, but have an ending that is not read."""
    found: list[Path] = []
    for folder in dict.fromkeys(file.parent for file in files):
        try:
            found += [path for path in folder.iterdir() if _looks_unread(path)]
        except OSError:
            continue
    return sorted(found)


def unread_note(files: Sequence[Path], root: Path) -> str | None:
    """Return a line with the files in the folders of these case files that are not read; None without any."""
    unread = unread_neighbours(files)
    if not unread:
        return None
    shown = [ascii(os.path.relpath(path, root)) for path in unread[:3]]
    if len(unread) > len(shown):
        shown.append(f"{len(unread) - len(shown)} more")
    remedy = "rename them, or `rageval cases convert` reads them"
    return f"not read, since case files end in .jsonl or .csv: {', '.join(shown)}; {remedy}"


def _looks_unread(path: Path) -> bool:
    ending = path.name.lower()
    if path.name.startswith(".") or not ending.endswith(OTHER_ENDINGS) or not path.is_file():
        return False
    if any(mark in ending for mark in NO_CASES):
        return False
    if not ending.endswith(_TEXTS):
        return True
    try:
        with path.open("rb") as file:
            beginning = file.read(_LONGEST_HEADER)
    except OSError:
        return False
    return b"question" in beginning or b"query" in beginning


def dead_end(path: Path) -> str | None:
    """Return why a found path is no file to be read, as the end of a sentence; None for a file, or for nothing."""
    if path.is_file():
        return None
    if path.is_symlink():
        target = os.readlink(path)
        if not path.exists():
            why = "leads back to itself" if _is_loop(path) else "does not exist"
            return f"is a link to {target!r}, which {why}; mend the link, or remove it"
    if path.is_dir():
        return "is a folder that cannot be read; give permission, or leave it out of `cases`"
    if path.exists():
        return "is no regular file; remove it"
    return None


def _is_loop(path: Path) -> bool:
    try:
        os.stat(path)
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def unmatched_globs(root: Path, globs: Sequence[str], files: Sequence[Path]) -> list[str]:
    """Return the globs that match none of the found files. Defaults may match none: a project uses some of them."""
    relative = [path.relative_to(root).as_posix() for path in files if path.is_relative_to(root)]
    written = (glob for glob in dict.fromkeys(globs) if glob not in DEFAULT_CASES)
    return [glob for glob in written if not any(map(_Rule.of((glob,)).takes_file, relative))]


def literal_folder(glob: str) -> str:
    """Return the folder that a glob begins with, up to its first wildcard: `evals/en` of `evals/en/**/*.jsonl`."""
    folders = [part for part in glob.split("/")[:-1] if part not in ("", ".")]
    return "/".join(takewhile(lambda part: not any(mark in part for mark in "*?["), folders))


def is_case_file(path: Path, root: Path, globs: Sequence[str]) -> bool:
    """Return True if `find_case_files` would find this path, whether or not it exists; False outside `root`."""
    try:
        relative = path.relative_to(root).as_posix()
    except ValueError:
        return False
    rule = _Rule.of(tuple(globs))
    folders, _, _ = relative.rpartition("/")
    is_pruned = any(map(rule.prunes, folders.split("/") if folders else ()))
    return rule.takes_file(relative) and not is_pruned and not is_reference_file(path)


def is_reference_file(path: Path) -> bool:
    """Return True for a file of references or answers (CSV or JSONL) next to its `questions` file."""
    if path.stem not in REFERENCES or not has_case_suffix(path):
        return False
    return any(path.with_name(f"questions{suffix}").is_file() for suffix in SUFFIXES) and has_references(path)


def has_references(path: Path) -> bool:
    """Return True if the first line of this file has a reference and no question."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            # Bounded: this is read of any file with such a name, in every test session.
            line = file.readline(_LONGEST_HEADER)
    except OSError:
        return False
    names = set(re.findall(r'"(\w+)"\s*:' if path.suffix.lower() == ".jsonl" else r'[^\s",]+', line))
    return "reference" in names and names.isdisjoint(("question", "query"))


class _Rule:
    """The globs, compiled."""

    def __init__(self, globs: tuple[str, ...]) -> None:
        self._patterns = [_compiled(glob) for glob in globs]
        self._named: set[str] = set()
        for glob in globs:
            self._named.update(glob.split("/")[:-1])
        self._folders = list(filter(None, map(literal_folder, globs)))

    @staticmethod
    @lru_cache(maxsize=64)
    def of(globs: tuple[str, ...]) -> _Rule:
        return _Rule(globs)

    def takes_file(self, relative: str) -> bool:
        base = relative.rpartition("/")[2]
        relative = _with_small_ending(relative)
        if any(mark in base for mark in NO_CASES):
            return False
        return any(pattern.fullmatch(relative) for pattern in self._patterns)

    def names_folder(self, relative: str) -> bool:
        """Return True if a glob names this folder, one above, or one below it: then cases may be lost with it."""
        folder = f"{relative}/"
        return any(folder.startswith(f"{named}/") or named.startswith(folder) for named in self._folders)

    def prunes(self, folder: str) -> bool:
        is_odd = folder.startswith(".") or folder in PRUNED or folder.endswith(".egg-info")
        return is_odd and folder not in self._named


def _with_small_ending(relative: str) -> str:
    """Return a path with the ending of case files in small letters, as globs are written."""
    stem, _, ending = relative.rpartition(".")
    small = f".{ending.lower()}"
    return stem + small if small in SUFFIXES else relative


def _compiled(glob: str) -> re.Pattern[str]:
    try:
        return re.compile(_translated(_with_small_ending(glob)))
    except re.error:  # a range such as [z-a]: a shell takes it literally
        return re.compile(re.escape(glob))


def _translated(glob: str) -> str:
    """Translate a glob into a regular expression for paths relative to the root, separated by `/`."""
    parts = [part for part in glob.split("/") if part not in ("", ".")]
    if not parts:
        return _NOTHING
    if "/" not in glob:
        parts = ["**", *parts]
    expression = ""
    for part in parts[:-1]:
        expression += r"(?:[^/]+/)*" if part == "**" else _translated_part(part) + "/"
    last = parts[-1]
    if last == "**":
        return expression + r"(?:[^/]+/)*(?!\.)[^/]+"
    unless_hidden = "" if last.startswith(".") else r"(?!\.)"
    return expression + unless_hidden + _translated_part(last)


def _translated_part(part: str) -> str:
    pieces = re.findall(r"\[!?\]?[^\]]*\]|.", part, re.DOTALL)
    return "".join(_WILD.get(piece) or _translated_set(piece) for piece in pieces)


_NOTHING = "(?!)"
_WILD = {"*": "[^/]*", "?": "[^/]"}


def _translated_set(piece: str) -> str:
    if len(piece) == 1:
        return re.escape(piece)
    negated = piece[1] == "!"
    members = piece[2 if negated else 1 : -1].replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    # A set may begin with ^ or contain && and the like: special to `re`, literal to a shell.
    members = re.sub(r"([&~|^])", r"\\\1", members)
    return f"(?!/)[{'^' if negated else ''}{members}]"


def _files(root: Path, rule: _Rule, may_lose: Callable[[str], bool]) -> Iterator[str]:
    """Yield the paths, relative to the root, of matching files in folders that are not pruned, and of dead ends.

    `may_lose`: returns True for a folder with which cases may be lost.
    """
    seen: set[tuple[int, int]] = set()
    waiting = [""]
    linked: list[str] = []
    while waiting or linked:
        # Linked folders come last: a folder that is found both ways keeps its own name.
        folder = waiting.pop() if waiting else linked.pop()
        try:
            here = os.stat(root / folder)
            entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name, reverse=True)
        except FileNotFoundError:  # deleted meanwhile
            continue
        except OSError:
            if may_lose(folder):
                yield folder
            continue
        # By device and inode: links may lead back to a folder above.
        if (here.st_dev, here.st_ino) in seen:
            continue
        seen.add((here.st_dev, here.st_ino))
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            if _is(entry.is_dir):
                if not rule.prunes(entry.name):
                    (linked if entry.is_symlink() else waiting).append(name)
            elif rule.takes_file(name) or (_is_dead_folder(entry) and may_lose(name)):
                yield name


def _is_dead_folder(entry: os.DirEntry[str]) -> bool:
    """Return True for a link that leads nowhere and may have led to a folder: its name has no ending."""
    return "." not in entry.name and entry.is_symlink() and not _is(entry.is_file)


def _is(look: Callable[[], bool]) -> bool:
    try:
        return look()
    except OSError:  # a link to itself
        return False
