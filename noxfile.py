"""Environments to test in, beside that of the Makefile: `nox -l` lists them, `nox -s wheel` runs one.

An interpreter that is not installed is skipped with a message. What stands behind `--` goes to pytest.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import nox

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["lint", "tests", "lowest", "wheel"]

ROOT = Path(__file__).parent
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
REPRESENTATIVE = ["tests/plugin/test_items.py", "tests/plugin/test_what_is_shown.py", "tests/cases", "tests/targets"]
"""What touches every dependency: pytest's and xdist's reports, httpx, pydantic, click, jmespath."""
NEIGHBOURS = ["pytest-json-report", "pytest-reportlog", "allure-pytest", "pytest-instafail", "pytest-retry"]
NEIGHBOURS += ["pytest-split", "pytest-forked", "pytest-flakefinder"]
CASE = '{"id": "one", "question": "When does water boil?", "gold": {"answer": "at 100 degrees"}}\n'
UNKNOWN = '{"id": "unknown", "question": "When does water boil?", "answerable": false}\n'
"""Nothing in the demo's notes answers it."""
BOT = "def answer(question):\n    return 'at 100 degrees'\n"


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All tests, on each Python that is installed."""
    session.install("--editable", ".[dev]")
    session.run("python", "-m", "pytest", *(session.posargs or ["tests", "-q", "-n", "4", "--dist", "worksteal"]))


@nox.session(python=PYTHONS[0])
def lowest(session: nox.Session) -> None:
    """Run a part of the tests with the lowest direct dependencies that pyproject.toml allows."""
    session.install(*lower_bounds(), "hypothesis")
    session.install("--no-deps", "--editable", ".")
    # The settings of the tests are those of the newest pytest: an option that 8.4 does not know is no error here.
    lenient = ("-o", "addopts=-m 'not torture'", "-W", "ignore::pytest.PytestWarning")
    session.run("python", "-m", "pytest", *lenient, *(session.posargs or [*REPRESENTATIVE, "-q"]))


@nox.session(python=PYTHONS[0])
def ray(session: nox.Session) -> None:
    """Test runs on a Ray cluster of this machine: the extra is 80 MB, so the other sessions skip them."""
    session.install("--editable", ".[dev,ray]")
    session.run("python", "-m", "pytest", *(session.posargs or ["tests/scale", "-q"]))


@nox.session(python=PYTHONS[0])
def neighbours(session: nox.Session) -> None:
    """Other plugins of pytest beside ours, those included that the other sessions skip."""
    session.install("--editable", ".[dev]", *NEIGHBOURS)
    matrix = ["tests/plugin/test_neighbours.py", "tests/plugin/test_neighbours_of_a_dying_worker.py"]
    matrix += ["-k", "neighbour", "-q", "-m", ""]
    session.run("python", "-m", "pytest", *(session.posargs or matrix))


@nox.session(python=PYTHONS[0])
def newest(session: nox.Session) -> None:
    """All tests with the newest release of everything, dependencies of dependencies included."""
    session.install("--upgrade", "--upgrade-strategy", "eager", "--editable", ".[dev]")
    session.run("python", "-m", "pytest", *(session.posargs or ["tests", "-q", "-n", "4", "--dist", "worksteal"]))


@nox.session(python=PYTHONS)
def wheel(session: nox.Session) -> None:
    """Test what is published away from these sources: the wheel alone, in a project of one case elsewhere."""
    with TemporaryDirectory(prefix="rageval-wheel-") as elsewhere:
        _try_wheel(session, Path(elsewhere).resolve())


def _try_wheel(session: nox.Session, elsewhere: Path) -> None:
    session.run("python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(elsewhere), str(ROOT))
    session.install(*map(str, elsewhere.glob("*.whl")))
    project = elsewhere / "project"
    (project / "evalcases").mkdir(parents=True, exist_ok=True)
    (project / "evalcases" / "one.jsonl").write_text(CASE, encoding="utf-8")
    (project / "unknown.jsonl").write_text(UNKNOWN, encoding="utf-8")
    (project / "bot.py").write_text(BOT, encoding="utf-8")
    (project / "pyproject.toml").write_text('[tool.rageval]\ntarget = "bot:answer"\n', encoding="utf-8")
    is_elsewhere = f"import pytest_rageval; assert pytest_rageval.__path__[0] != {str(ROOT / 'pytest_rageval')!r}"
    with session.chdir(project):
        session.run("python", "-c", is_elsewhere)
        session.run("python", "-m", "pytest", "-q")
        session.run("rageval", "explain", "latest", "one", silent=True)
        session.run("python", "-m", "pytest", "-q", "--rageval-target", "demo", "unknown.jsonl")
        session.run("rageval", "help", "gates", silent=True)
        session.run("python", "-m", "pytest_rageval", "--version")


@nox.session(python=PYTHONS[0])
def lint(session: nox.Session) -> None:
    """Style and types, as `make lint`."""
    session.install("--editable", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


def lower_bounds() -> list[str]:
    """Return the dependencies of pyproject.toml, each with `==` and its lower bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.sub(r"^([\w-]+)>=([\d.]+).*$", r"\1==\2", dependency) for dependency in project["dependencies"]]
