"""Equal inputs give equal bytes of metrics.json, apart from `volatile`, however and wherever they are run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from project import ALONE, Project, a_case, a_missed_case, plain
from run_invariants import check_files, stable

pytestmark = pytest.mark.child_process

BOT = """
import bot, hashlib

def answer(question, history=()):
    if "broken" in question:
        raise ValueError("the index is gone")
    found = bot.answer(question)
    share = int(hashlib.sha256(question.encode()).hexdigest(), 16) % 7 / 7
    for chunk in found["debug"]["retrieved_chunks"]:
        chunk["score"] = share  # sums of such values depend on their order
    found["answer"] += " About that, more could be said." * int(share * 7)
    return found
"""
TURNS = [{"question": "boiling here", "gold": {"answer": "100 degrees"}}, {"question": "And freezing?"}]
CASES: dict[str, list[dict[str, Any]]] = {
    "evalcases/a.jsonl": [
        *(a_case(f"q{number}", f"boiling {number}", tags=[f"t{number % 3}", "all"]) for number in range(9)),
        a_missed_case("missed", question="boiling missed", tags=["t1"]),
        a_case("broken", "boiling broken", category="multi_hop"),
    ],
    "evalcases/물/b ü.jsonl": [
        *(a_case(f"끓는점-{number}", f"boiling 탑 {number}", category="reasoning") for number in range(4)),
        a_case("unknown", "Who won?", answerable=False, category="general"),
        {"id": "talk", "turns": TURNS},
    ],
}
TABLE = """
target = "sure:answer"
look_ahead = 3
retries = 0
repeat = 2
cases = ["evalcases/**/*.jsonl"]
known_failures = "ratchet"
[tool.rageval.gates]
run = ["recall_any@5 >= 0.9"]
"""
REVERSED = "def pytest_collection_modifyitems(items): items.reverse()"
ENDS = """
import pytest
def pytest_runtest_logreport(report):
    if report.nodeid.endswith("q4") and report.when == "call":
        pytest.exit("enough")
"""


def written(folder: Path) -> Project:
    folder.mkdir(parents=True, exist_ok=True)
    project = Project(folder)
    project.write("sure.py", BOT)
    project.configure(TABLE)
    for name, cases in CASES.items():
        project.cases(cases, name)
    return project


def in_pytest(project: Project, *options: str) -> None:
    assert project.run(*options).ret == pytest.ExitCode.TESTS_FAILED


def in_a_process(project: Project, environment: Mapping[str, str] = {}, umask: int = 0o022, *options: str) -> None:
    """Run pytest in a process that starts, since the seed of hashes is chosen at that time."""
    before = os.umask(umask)
    try:
        command = ["-m", "pytest", *plain(options)]
        process = project.start_process(*command, env=os.environ | ALONE | dict(environment))
        assert process.wait(120) == pytest.ExitCode.TESTS_FAILED
    finally:
        os.umask(before)


def reversed_order(project: Project) -> None:
    project.write("conftest.py", REVERSED)
    in_pytest(project)


def elsewhere(project: Project) -> None:
    """All that differs between two machines, at once."""
    other = project.path.parent / "ander er Ort ü"
    shutil.copytree(project.path, other)
    shutil.rmtree(project.path / "reports")
    (other / "conftest.py").write_text(REVERSED)
    moved = Project(other)
    moved.configure(TABLE)
    foreign = {"PYTHONHASHSEED": "7", "LC_ALL": "C", "TZ": "Pacific/Kiritimati", "USER": "somebody", "HOME": str(other)}
    in_a_process(moved, foreign, 0o077, "--rageval-concurrency", "1")
    moved.close()
    shutil.copytree(other / "reports", project.path / "reports")


def with_command(project: Project, *options: str) -> None:
    assert project.rageval("run", *options).ret == 1


def divided(project: Project) -> None:
    for number in ("1/3", "3/3", "2/3"):
        project.rageval("run", "--shard", number, "--run-id", f"part-{number[0]}")
    assert project.rageval("merge", "part-2", "part-1", "part-3").ret == 1


def resumed(project: Project) -> None:
    project.write("conftest.py", ENDS)
    assert project.run("--rageval-run-id", "one").ret == pytest.ExitCode.INTERRUPTED
    (project.path / "conftest.py").unlink()
    in_pytest(project, "--rageval-resume", "one")


def shuffled(project: Project, seed: int) -> None:
    in_pytest(project, "-p", "randomly", "-p", f"randomly_seed={seed}")


class Way(NamedTuple):
    run: Callable[[Project], None]
    is_usual: bool = False


def with_environment(**environment: str) -> Way:
    return Way(lambda project: in_a_process(project, environment))


TAKES_LOCALE = """
import locale
locale.setlocale(locale.LC_ALL, "")
assert locale.str(1.5) == "1,5", locale.setlocale(locale.LC_ALL)
"""


def in_locale(project: Project, name: str) -> None:
    """Run in a locale with a decimal comma, which is made for the test, as few machines have it installed."""
    localedef = shutil.which("localedef")
    if localedef is None or not Path("/usr/share/i18n/locales", name).exists():
        pytest.skip(f"no sources of the locale {name}: apt-get install locales")
    locales = project.path.parent / "locales"
    locales.mkdir()
    # Its exit code says that there were warnings as well; the assertion in the run says whether it works.
    subprocess.run([localedef, "-i", name, "-f", "UTF-8", str(locales / f"{name}.UTF-8")], check=False, timeout=60)
    # Python itself takes the encoding alone of what is set; projects and their libraries take the rest.
    project.write("conftest.py", TAKES_LOCALE)
    in_a_process(project, {"LOCPATH": str(locales), "LC_ALL": f"{name}.UTF-8"})


WAYS = {
    "another machine and order": Way(elsewhere, is_usual=True),
    "-n 2": Way(lambda project: in_pytest(project, "-n", "2"), is_usual=True),
    "shards and merge": Way(divided, is_usual=True),
    "interrupted and resumed": Way(resumed, is_usual=True),
    "in another order": Way(reversed_order),
    "-n 0": Way(lambda project: in_pytest(project, "-n", "0")),
    "-n 4": Way(lambda project: in_pytest(project, "-n", "4")),
    "-n 4, loadfile": Way(lambda project: in_pytest(project, "-n", "4", "--dist", "loadfile")),
    "rageval run": Way(with_command),
    "--workers 2": Way(lambda project: with_command(project, "--workers", "2")),
    "one at a time": Way(lambda project: in_pytest(project, "--rageval-concurrency", "1")),
    "umask": Way(lambda project: in_a_process(project, {}, 0o077)),
    **{f"hash seed {seed}": with_environment(PYTHONHASHSEED=str(seed)) for seed in (0, 1, 2, 42)},
    **{f"LC_ALL={locale}": with_environment(LC_ALL=locale) for locale in ("C", "POSIX", "C.UTF-8")},
    "decimal comma": Way(lambda project: in_locale(project, "de_DE"), is_usual=True),
    "dotless i": Way(lambda project: in_locale(project, "tr_TR")),
    **{f"TZ={zone}": with_environment(TZ=zone) for zone in ("Asia/Seoul", "Pacific/Kiritimati", "America/St_Johns")},
}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A project with a baseline, and the bytes of its run with nothing special."""
    project = written(tmp_path_factory.mktemp("same") / "project")
    project.write("sure.py", BOT.replace("% 7 / 7", "% 7 / 8"))  # so that something is compared
    project.run("--rageval-update-baseline", "--rageval-force", "--rageval-run-id", "before")
    project.write("sure.py", BOT)
    kept = project.path.parent / "kept"
    shutil.copytree(project.path, kept)
    in_pytest(project)
    return kept, stable(project.path / "reports/metrics.json")


@pytest.mark.reliability("determinism", "other machines, orders, workers, shards, resumed", costs="false green")
@pytest.mark.parametrize(
    "way", [name if way.is_usual else pytest.param(name, marks=pytest.mark.torture) for name, way in WAYS.items()]
)
def test_the_same_bytes(reference: tuple[Path, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str):
    kept, expected = reference
    shutil.copytree(kept, tmp_path / "project")
    project = Project(tmp_path / "project")
    project.configure(TABLE)
    monkeypatch.chdir(project.path)
    WAYS[way].run(project)
    project.close()
    check_files(project.path / "reports")
    assert stable(project.path / "reports/metrics.json") == expected
