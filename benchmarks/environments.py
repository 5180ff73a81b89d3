"""Environments of the peers: pinned packages below `benchmarks/.peers`, apart from ours and from each other.

Nothing leaves the machine when they run: telemetry is off by each tool's own variable, and whatever asks all the same
meets a proxy that is not there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS, REQUIREMENTS, PLACE = HERE / "peers", HERE / "peers" / "requirements", HERE / ".peers"
NAMES = ("pydantic-evals", "ragas", "inspect-ai", "deepeval", "pytest-evals", "promptfoo")
SERIAL = frozenset({"pytest-evals"})
"""Those that make one call after the other: how they overlap calls cannot be measured."""
OFFLINE = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_NO_INSPECT_PROMPT": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "LOGFIRE_SEND_TO_LOGFIRE": "false",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "RAGAS_DO_NOT_TRACK": "true",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
}
INSTALLING_S = 900


class CannotBeInstalled(Exception):
    """Why, in one line."""


@dataclass(frozen=True, slots=True)
class Peer:
    """An installed tool."""

    name: str
    version: str
    interpreter: Path

    def command(self, url: str, cases: int, in_flight: int) -> list[str]:
        """Cases asked and judged over the server at this address."""
        script = SCRIPTS / f"with_{self.name.replace('-', '_')}.py"
        return [str(self.interpreter), str(script), url, str(cases), str(in_flight)]

    def environment(self, folder: Path) -> dict[str, str]:
        """What it keeps for itself goes below the folder."""
        own = {"HOME": str(folder), "PROMPTFOO_CONFIG_DIR": str(folder / ".promptfoo")}
        programs = PLACE / self.name / "node_modules" / ".bin"
        if programs.is_dir():
            own |= {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PROMPTFOO": str(programs / self.name)}
        return OFFLINE | own


def installed(name: str) -> Peer:
    """The peer, installed now unless it is there already as its requirements say; CannotBeInstalled otherwise."""
    is_npm = (REQUIREMENTS / f"{name}.json").is_file()
    requirements = REQUIREMENTS / f"{name}.{'json' if is_npm else 'txt'}"
    pinned = requirements.read_text(encoding="utf-8")
    folder = PLACE / name
    stamp = folder / ".ready"  # written last, so that a broken environment is not taken for a whole one
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != pinned:
        print(f"… installing {name}", file=sys.stderr, flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        if is_npm:
            (folder / "package.json").write_text(pinned, encoding="utf-8")
            _run(["npm", "install", "--silent", "--no-fund", "--no-audit"], folder)
        else:
            _run([sys.executable, "-m", "venv", "."], folder)
            pip = ["bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            _run([*pip, "-r", str(requirements)], folder)
        stamp.write_text(pinned, encoding="utf-8")
    interpreter = Path(sys.executable) if is_npm else folder / "bin" / "python"
    return Peer(name, _version(name, pinned), interpreter)


def _version(name: str, pinned: str) -> str:
    """Of the tool itself, as it is pinned: `inspect_ai==0.3` or `"promptfoo": "0.1"`."""
    for line in pinned.replace('"', "").replace(": ", "==").splitlines():
        package, _, version = line.strip().rstrip(",").partition("==")
        if package.lower().replace("_", "-") == name:
            return version
    raise CannotBeInstalled(f"its requirements do not pin {name}")


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=INSTALLING_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBeInstalled(f"{command[0]}: {error}") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        raise CannotBeInstalled(f"{Path(command[0]).name}: {lines[-1].strip()[:200]}")
