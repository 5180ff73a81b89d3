"""The environment of a run that the browser starts: the server's own and the keys of `.env`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pytest_rageval.config.settings import ENVIRONMENT
from pytest_rageval.io.environment_secrets import WEB_TOKEN
from pytest_rageval.web.jobs.env_file import read_env_file

NOT_HANDED_ON = (*ENVIRONMENT, WEB_TOKEN)
"""They would ask another system than the agent's, write elsewhere, or give the run the word for the server."""


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
