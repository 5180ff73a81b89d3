"""A project's `.env`: keys for the environment of runs that the web app starts. Nothing else reads it.

One `NAME=value` a line; `export` before it is allowed, empty lines and those that begin with `#` say nothing. A value
in single or double quotation marks is what stands between them; any other ends with the line. Nothing is filled in and
nothing is escaped: a file that means more than this is refused, lest a key be something else than it looks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from pytest_rageval.config.settings import ENVIRONMENT
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.environment_secrets import WEB_TOKEN

LARGEST = 64 * 1024
"""Bytes."""
_LINE = re.compile(r"(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(?P<value>.*)")
_QUOTED = re.compile(r"""(?P<mark>['"])(?P<value>[^'"\\$]*)(?P=mark)(?:[ \t]+#.*)?""")
_PLAIN = re.compile(r"""[^\s'"\\$#`]*""")
NOT_HANDED_ON = (*ENVIRONMENT, WEB_TOKEN)
"""They would ask another system than the agent's, write elsewhere, or give the run the word for the server."""


def read_env_file(path: Path) -> dict[str, str]:
    """The variables of the file, none where there is no file; SettingsError with every line that cannot be read.

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
        if (match := _LINE.fullmatch(written)) is None:
            problems.append(f"{path.name}:{number}: not NAME=value")
            continue
        name, value = match["name"], _value(match["value"])
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


def run_environment(root: Path, env_file: Path | None, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables for a run of this project's code; what is set already counts more than the file.

    SettingsError where the file cannot be read.
    """
    own = os.environ if environment is None else environment
    variables = {**({} if env_file is None else read_env_file(env_file)), **own}
    for name in NOT_HANDED_ON:
        variables.pop(name, None)
    paths = [str(root), *filter(None, [variables.get("PYTHONPATH")])]
    return variables | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
