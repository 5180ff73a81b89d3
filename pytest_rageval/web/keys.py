"""The keys of runs: the variables of `.env` and of the environment, and which of them are set."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.config.settings import ENVIRONMENT
from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.io.atomic import write_bytes
from pytest_rageval.io.environment_secrets import SENT_FROM_ENVIRONMENT, WEB_TOKEN
from pytest_rageval.providers import PROVIDERS
from pytest_rageval.web.versions.agent import Agent

LARGEST = 64 * 1024
"""Bytes."""
_LINE = re.compile(r"(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(?P<value>.*)")
# No escapes and no `$`: readers of `.env` differ in them, and a key read differently is hard to find.
_QUOTED = re.compile(r"""(?P<mark>['"])(?P<value>[^'"\\$]*)(?P=mark)(?:[ \t]+#.*)?""")
_PLAIN = re.compile(r"""[^\s'"\\$#`]*""")


def read_env_file(path: Path) -> dict[str, str]:
    """Read the variables of the file, none if it is missing; raise SettingsError with every invalid line.

    A problem names the line and the variable, never a value.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise SettingsError(f"{path.name}: larger than {LARGEST:,} bytes; it should hold keys alone")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise SettingsError(f"{path.name}: not UTF-8; save it so") from None
    except OSError as error:
        raise SettingsError(f"{path.name}: cannot be read: {error.strerror}") from None
    variables: dict[str, str] = {}
    problems: list[str] = []
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        written = line.strip()
        if not written or written.startswith("#"):
            continue
        match = _LINE.fullmatch(written)
        if match is None:
            problems.append(f"{path.name}:{number}: not NAME=value")
            continue
        name = match["name"]
        value = _value(match["value"])
        if value is None:
            problems.append(
                f"{path.name}:{number}: the value of {name} has spaces, quotation marks, $, \\ or # in it; write it "
                "between quotation marks, without such marks inside"
            )
        elif name in variables:
            problems.append(f"{path.name}:{number}: {name} stands there twice; keep one")
        else:
            variables[name] = value
    if problems:
        raise SettingsError(*problems)
    return variables


def _value(written: str) -> str | None:
    if (quoted := _QUOTED.fullmatch(written)) is not None:
        return quoted["value"]
    return written if _PLAIN.fullmatch(written) else None


def key_environment(env_file: Path | None, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of `.env` and of the environment, which overrides them, without the app's token.

    An agent's headers may send them. Raise SettingsError if the file is unreadable.
    """
    variables: dict[str, str] = {}
    if env_file is not None:
        variables |= read_env_file(env_file)
    variables |= os.environ if environment is None else environment
    # An agent's header may name any variable of these: it could send the app's own token to its server.
    variables.pop(WEB_TOKEN, None)
    return variables


def run_environment(root: Path, env_file: Path | None, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables for a run of this project's code, without those that would change what is run."""
    variables = key_environment(env_file, environment)
    for name in ENVIRONMENT:
        variables.pop(name, None)
    paths = str(root)
    if variables.get("PYTHONPATH"):
        paths += os.pathsep + variables["PYTHONPATH"]
    return variables | {"PYTHONPATH": paths, "PYTHONUNBUFFERED": "1"}


MOST_VALUE = 4_000
_STORABLE_NAME = re.compile(r"(?!RAGEVAL_)[A-Z][A-Z0-9_]{0,60}(KEY|TOKEN|SECRET)")
_STORABLE_VALUE = re.compile(r"[^'\"\\$\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def store_key(env_file: Path | None, name: str, value: str) -> None:
    """Write a key into `.env`, in place of an earlier one of this name, readable for its owner only.

    Other names than those of keys are refused: a variable such as PYTHONPATH would run code.
    Raise SettingsError, which never holds the value, if it cannot be stored or would not count.
    """
    if env_file is None:
        raise SettingsError(f"there is no .env here: set {name} in the environment, and start rageval web again")
    if not _STORABLE_NAME.fullmatch(name):
        raise SettingsError("the name of a key is in capitals and ends with KEY, TOKEN or SECRET, as in BOT_KEY")
    if len(value) > MOST_VALUE or not _STORABLE_VALUE.fullmatch(value):
        raise SettingsError(f"the key is blank, has a quotation mark, \\ or $ in it, or is longer than {MOST_VALUE:,}")
    if os.environ.get(name):
        raise SettingsError(f"{name} is set in the environment, which counts: change it there, or use another name")
    kept: list[str] = []
    if read_env_file(env_file):
        for line in env_file.read_text(encoding="utf-8").removeprefix("\ufeff").splitlines():
            match = _LINE.fullmatch(line.strip())
            if match is None or match["name"] != name:
                kept.append(line)
    content = "\n".join([*kept, f'{name}="{value}"']) + "\n"
    # First: between the two, `git add -A` would take the key.
    _keep_out_of_git(env_file)
    write_bytes(env_file, content.encode(), mode=0o600)


def _keep_out_of_git(env_file: Path) -> None:
    """Add a line for this file to the `.gitignore` next to it, unless one there or above covers it."""
    for folder in env_file.parents:
        is_ignored = _is_ignored_by(folder / ".gitignore", env_file.relative_to(folder).as_posix())
        if is_ignored:
            return
        if is_ignored is not None or (folder / ".git").exists():
            break
    gitignore = env_file.with_name(".gitignore")
    before = gitignore.read_bytes() if gitignore.exists() else b""
    if before and not before.endswith(b"\n"):
        before += b"\n"
    write_bytes(gitignore, before + f"/{env_file.name}\n".encode(), mode=0o644)


def _is_ignored_by(gitignore: Path, place: str) -> bool | None:
    """Return whether the last matching line ignores the file at this place below its folder; None if none matches."""
    name = place.rpartition("/")[2]
    try:
        lines = gitignore.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    is_ignored: bool | None = None
    for line in lines:
        pattern = line.strip()
        is_kept = pattern.startswith("!")
        pattern = pattern.removeprefix("!").removeprefix("**/")
        # A pattern with a slash is for a place, as `/.env` is for this folder alone; any other is for each name below.
        is_about_it = fnmatchcase(place, pattern.removeprefix("/")) if "/" in pattern else fnmatchcase(name, pattern)
        if is_about_it:
            is_ignored = not is_kept
    return is_ignored


class KeyState(NamedTuple):
    """The name of a variable that holds a key, where it is set, and what it is for; never its value."""

    name: str
    where: str
    purpose: str = ""

    @property
    def is_set(self) -> bool:
        return self.where != NOT_SET


NOT_SET = "not set"
KEYS_OF_PROVIDERS: Mapping[str, str] = {kind: row.keys[0] for kind, row in PROVIDERS.items() if row.keys}


def needed_keys(agent: Agent, env_file: Path | None, *, is_asked: bool = True) -> list[KeyState]:
    """Return the keys without which a run of this agent fails; `is_asked`: its system is asked, not only judged."""
    purposes: dict[str, str] = {}
    specs: list[tuple[str, str]] = []
    if is_asked:
        for name, value in agent.headers.items():
            if value.startswith("env:"):
                purposes[value.removeprefix("env:")] = f"header {name}"
        if agent.target_kind == "chat" and agent.target:
            specs.append(("what is asked", agent.target))
    if not agent.judge_base_url:
        specs.append(("the judge", agent.judge))
    for purpose, spec in specs:
        variable = KEYS_OF_PROVIDERS.get(spec.partition(":")[0])
        if variable is not None and "@http" not in spec:  # a server of one's own needs no key of a provider
            purposes.setdefault(variable, purpose)
    states = {state.name: state for state in key_states(env_file, purposes)[0]}
    return [states[name]._replace(purpose=purpose) for name, purpose in purposes.items()]


def key_states(env_file: Path | None, more: Iterable[str] = ()) -> tuple[list[KeyState], Sequence[str]]:
    """Return which keys are set (those of providers, of the `.env` and `more`), and the problems of the `.env`."""
    problems: Sequence[str] = ()
    from_file: dict[str, str] = {}
    if env_file is not None:
        try:
            from_file = read_env_file(env_file)
        except RagevalError as error:
            problems = error.problems
    names = dict.fromkeys([*SENT_FROM_ENVIRONMENT, *sorted(from_file), *more])
    return [KeyState(name, _where(name, from_file)) for name in names], problems


def _where(name: str, from_file: Mapping[str, str]) -> str:
    if os.environ.get(name):
        return "set in the environment"
    return "set in .env" if from_file.get(name) else NOT_SET
