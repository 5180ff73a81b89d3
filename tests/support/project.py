"""A small project in a folder: cases, a bot, runs of pytest and of the command in it, and their files."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import pkgutil
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner, Result
from processes import PATIENCE_S, running, warm_workers

import pytest_rageval
from pytest_rageval.cli.main import main
from pytest_rageval.cli.main import rageval as every_command
from pytest_rageval.errors import RagevalError

ALONE_AND_WITH_WORKERS = pytest.mark.parametrize("how", [[], ["-n", "1"]], ids=["alone", "with workers"])
ASSERT_GATES = "rageval.evaluate(eval_case).assert_gates()"
PLAIN = ("-p", "rageval", "-p", "xdist")
"""Our plugin and its workers. What else lives in this environment costs each process 0.2 s; test_neighbours has it."""
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
PLUGIN_OF = {"--html": ("-p", "metadata", "-p", "html"), "--timeout": ("-p", "timeout")}
OF_THE_PROCESS = ("faulthandler", "threadexception", "unraisableexception")
"""What pytest watches for a whole process: the session of the test itself does, and makes errors of what it sees."""


def _load_everything() -> None:
    """Import all modules of the package: the first run should take no longer than the others, nor change them."""
    for module in pkgutil.walk_packages(pytest_rageval.__path__, "pytest_rageval."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as missing:
                if (missing.name or "").startswith("pytest_rageval"):
                    raise  # else it is of an extra that is not installed


def rageval(folder: Path, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """`rageval ARGUMENTS` in a folder, to its exit code."""
    return _ended(folder, main, "rageval", [str(argument) for argument in arguments], environment)


def run_pytest(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """pytest in a folder, with no plugin but ours and those that the arguments speak of."""
    with warm_workers():
        return run_pytest_with_neighbours(folder, *plain(arguments), **ALONE, **environment)


def run_pytest_with_neighbours(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """pytest in a folder, with all plugins of this environment."""
    watched = [argument for name in OF_THE_PROCESS for argument in ("-p", f"no:{name}")]

    def run() -> None:
        sys.exit(int(pytest.main([*watched, *arguments])))

    return _ended(folder, run, "pytest", arguments, environment)


def plain(arguments: Sequence[str]) -> tuple[str, ...]:
    """Arguments of pytest, with the plugins that they need where none is loaded of itself."""
    needed = [of for option, of in PLUGIN_OF.items() if any(argument.startswith(option) for argument in arguments)]
    return (*PLAIN, *(word for of in needed for word in of), *arguments)


def as_result(ended: subprocess.CompletedProcess[str]) -> pytest.RunResult:
    """What ended, as `pytester.run` would give it."""
    return pytest.RunResult(ended.returncode, ended.stdout.splitlines(), ended.stderr.splitlines(), 0.0)


def _ended(
    folder: Path, run: Callable[[], None], name: str, arguments: Iterable[str], environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    out, err = io.BytesIO(), io.BytesIO()
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    words = [name, *arguments]
    with (
        _as_if_alone(folder),
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "argv", words),
        contextlib.redirect_stdout(io.TextIOWrapper(out, encoding, "strict", "\n", write_through=True)),
        contextlib.redirect_stderr(io.TextIOWrapper(err, encoding, "backslashreplace", "\n", write_through=True)),
    ):
        code = _exit_code(run)
        # Still here: a stream that is let go of closes what it wrote to.
        shown = [stream.getvalue().decode(encoding) for stream in (out, err)]
    print(*words, *shown, sep="\n")  # for whoever reads why a test failed
    return subprocess.CompletedProcess(words, code, *shown)


def _exit_code(run: Callable[[], None]) -> int:
    try:
        run()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


@contextlib.contextmanager
def _as_if_alone(folder: Path) -> Iterator[None]:
    """In this folder, with none of its modules imported yet; afterwards they are forgotten."""
    # Compiled files are told apart by second and size: a bot written anew within a second would be the old one.
    with contextlib.chdir(folder), mock.patch.object(sys, "dont_write_bytecode", True), own_modules(folder):
        yield


@contextlib.contextmanager
def own_modules(folder: Path) -> Iterator[None]:
    """With none of the modules of this folder imported yet; afterwards they are forgotten."""
    modules, path = dict(sys.modules), list(sys.path)
    # A test before this one may have had a module of the same name somewhere else.
    for name in {path.stem for path in folder.rglob("*.py")} & sys.modules.keys():
        del sys.modules[name]
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = path
        for name, module in list(sys.modules.items()):
            if name not in modules and _lies_below(module, folder):
                del sys.modules[name]
        sys.modules.update(modules)


def _lies_below(module: ModuleType, folder: Path) -> bool:
    place = getattr(module, "__file__", None)
    return place is not None and Path(place).is_relative_to(folder)


_load_everything()


BOT = '''
"""Answers from a dictionary; what it does not know it refuses."""
NOTES = {
    "boiling": ("notes/water.md", "# Water > ## Boiling", "Water boils at 100 degrees at sea level."),
    "freezing": ("notes/water.md", "# Water > ## Freezing", "Water freezes at 0 degrees."),
    "탑": ("notes/seoul.md", "# 서울 > ## 남산", "남산서울타워의 높이는 236미터이다."),
}

def answer(question):
    found = [note for word, note in NOTES.items() if word in question.lower()]
    if not found:
        return {"answer": "", "abstained": True, "debug": {"retrieved_chunks": []}}
    chunks = [
        {"chunk_id": f"c{rank}", "rel_path": path, "heading_path": heading, "text": text, "rank": rank}
        for rank, (path, heading, text) in enumerate(found, 1)
    ]
    return {
        "answer": " ".join(chunk["text"] for chunk in chunks),
        "abstained": False,
        "references": [{"chunk_id": chunk["chunk_id"]} for chunk in chunks],
        "debug": {"retrieved_chunks": chunks},
    }
'''


def a_case(id: str, question: str = "What is the boiling point of water?", **fields: Any) -> dict[str, Any]:
    """A case that the bot answers right, unless `fields` say otherwise."""
    case: dict[str, Any] = {"id": id, "question": question, "category": "factual"}
    if fields.get("answerable", True):
        case["gold_supports"] = [{"rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling"}]
        case["gold"] = {"answer": "Water boils at 100 degrees at sea level."}
    return case | fields


def a_missed_case(id: str, **fields: Any) -> dict[str, Any]:
    """A case whose gold the bot does not retrieve."""
    elsewhere = [{"rel_path": "notes/elsewhere.md", "heading_path": ""}]
    return a_case(id, **{"gold_supports": elsewhere} | fields)


SOME = [
    a_case("boil"),
    a_case("freeze", "What is the freezing point?", category="multi_hop",
           gold_supports=[{"rel_path": "notes/water.md", "heading_path": "# Water > ## Freezing"}],
           gold={"answer": "Water freezes at 0 degrees."}, tags=["cold"]),
    a_case("남산-높이", "남산 탑의 높이는?", gold_supports=[{"rel_path": "notes/seoul.md", "heading_path": ""}],
           gold={"answer": "남산서울타워의 높이는 236미터이다."}, category="reasoning"),
    a_case("unknown", "Who won?", answerable=False, category="general"),
]  # fmt: skip
"""Four cases that pass."""


class ProjectFolder:
    """A folder with files, cases and a configuration."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def cases(self, cases: Iterable[Mapping[str, Any]], name: str = "evalcases/a.jsonl") -> Path:
        return self.write(name, "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases))

    def own_test(self, cases: str, body: str, name: str = "test_own.py", select: str | None = None) -> None:
        """Write a test of the project's own over a case file; `body`: what it does with each case."""
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        mark = f"@pytest.mark.rageval({cases!r}, select={select!r})\n"
        self.write(name, f"import pytest\n{mark}def test_own(eval_case, rageval):\n{lines}\n")

    def configure(self, table: str, extra: str = "") -> None:
        self.write("pyproject.toml", f"[tool.rageval]\n{table}\n{extra}")


class Project(ProjectFolder):
    """A folder with cases and a bot, in which pytest and the command are run."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._processes = contextlib.ExitStack()
        self.write("bot.py", BOT)
        self.configure('target = "bot:answer"')

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run pytest there, in this process; its workers, if there are to be some, are processes of their own."""
        return as_result(run_pytest(self.path, *arguments))

    def run_process(self, *arguments: str) -> pytest.RunResult:
        """Run pytest there in a process of its own."""
        return self.process(sys.executable, "-m", "pytest", *plain(arguments), **ALONE)

    def start(self, *arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
        """Start pytest there in a process, and a group of processes, of its own."""
        return self.start_process("-m", "pytest", *plain(arguments), env=os.environ | ALONE, **streams)

    def start_process(self, *arguments: str, **options: Any) -> subprocess.Popen[Any]:
        """Start Python there; what runs at the end of the test is killed."""
        command = [sys.executable, *arguments]
        return self._processes.enter_context(running(command, cwd=self.path, stdin=subprocess.DEVNULL, **options))

    def close(self) -> None:
        self._processes.close()

    def process(self, *command: str, **environment: str) -> pytest.RunResult:
        """Run any command there."""
        done = subprocess.run(
            command, cwd=self.path, env=os.environ | environment, stdin=subprocess.DEVNULL, capture_output=True,
            encoding="utf-8", check=False, timeout=PATIENCE_S,
        )  # fmt: skip
        print(done.stdout, done.stderr)
        return as_result(done)

    def rageval(self, *arguments: str, **environment: str) -> pytest.RunResult:
        """Run the command there, in this process."""
        return as_result(rageval(self.path, *arguments, **environment))

    @property
    def runs(self) -> list[Path]:
        return sorted((self.path / "reports" / "runs").glob("*"))

    def records(self) -> dict[str, dict[str, Any]]:
        """The last run's results.jsonl by case id; of several trials the first."""
        records = self.results()
        assert len({(record["case_key"], record["trial"]) for record in records}) == len(records), "recorded twice"
        return {record["test_case_id"]: record for record in sorted(records, key=itemgetter("trial"), reverse=True)}

    def results(self, run_id: str = "") -> list[dict[str, Any]]:
        """The lines of results.jsonl of a run, else of the last one."""
        # Not splitlines(): texts may hold what it, too, takes for the end of a line.
        run = self.path / "reports" / "runs" / run_id if run_id else self.runs[-1]
        return [json.loads(line) for line in (run / "results.jsonl").read_text("utf-8").rstrip("\n").split("\n")]

    def outcomes(self) -> dict[str, str]:
        return {id: record["outcome"] for id, record in self.records().items()}

    def config(self) -> dict[str, Any]:
        """The config.json of the run that was begun last."""
        run = max(self.runs, key=lambda run: run.stat().st_mtime_ns)
        return json.loads((run / "config.json").read_text(encoding="utf-8"))

    def metrics(self) -> dict[str, Any]:
        """The last run's metrics.json."""
        return json.loads((self.path / "reports" / "metrics.json").read_text(encoding="utf-8"))

    def stable_metrics(self) -> str:
        """The last run's metrics.json, without what may differ between equal runs, as text."""
        metrics = self.metrics()
        del metrics["volatile"]
        return json.dumps(metrics, sort_keys=True, ensure_ascii=False)


def lines_with(result: pytest.RunResult, word: str) -> Sequence[str]:
    """The lines of the output in which a word stands."""
    return [line for line in [*result.outlines, *result.errlines] if word in line]


RUN = "one"
TABLE = 'target = "bot:answer"'
DECIDED = ("config.json", "results.jsonl", "observations.jsonl", "metrics.json", "summary.md", "scores.jsonl")
"""What deciding a run again may rewrite."""


class StoredProject(ProjectFolder):
    """A folder with cases, a bot and runs."""

    @classmethod
    def new(cls, path: Path, cases: Iterable[Mapping[str, Any]], table: str = TABLE, extra: str = "") -> StoredProject:
        project = cls(path)
        project.write("bot.py", BOT)
        project.configure(table, extra)
        project.cases(cases)
        return project

    def copied(self, path: Path) -> StoredProject:
        shutil.copytree(self.path, path)
        return StoredProject(path)

    def pytest(self, *arguments: str, run_id: str = RUN) -> None:
        """Run pytest there, with no plugin but ours."""
        done = run_pytest(self.path, "-q", "--rageval-run-id", run_id, *arguments)
        assert done.returncode in (0, 1), done.stdout + done.stderr

    def folder(self, run_id: str = RUN) -> Path:
        return self.path / "reports" / "runs" / run_id

    def files(self, run_id: str = RUN) -> dict[str, bytes]:
        """The run's files that can be rewritten, and the metrics.json of the last run."""
        paths = [*(self.folder(run_id) / name for name in DECIDED), self.path / "reports" / "metrics.json"]
        return {str(path.relative_to(self.path)): path.read_bytes() for path in paths if path.exists()}

    def records(self, run_id: str = RUN) -> dict[str, dict[str, Any]]:
        """The last record of each case by its id."""
        lines = (self.folder(run_id) / "results.jsonl").read_text(encoding="utf-8").splitlines()
        return {record["test_case_id"]: record for record in map(json.loads, lines)}

    def json(self, name: str, run_id: str = RUN) -> dict[str, Any]:
        return json.loads((self.folder(run_id) / name).read_text(encoding="utf-8"))

    def config_hash(self) -> str:
        return str(self.json("config.json")["config_hash"])


def command(*arguments: str | Path) -> Result:
    """`rageval ARGUMENTS` in the current folder."""
    return CliRunner().invoke(every_command, [str(argument) for argument in arguments])


def problems(result: Result) -> list[str]:
    """The lines that the command would show for its error, and nothing else."""
    assert isinstance(result.exception, RagevalError), (result.output, result.exception)
    assert all("\n" not in problem for problem in result.exception.problems)
    return list(result.exception.problems)


FOUNDING = Path(__file__).parents[1] / "data" / "founding"


def document(name: str) -> Any:
    """The content of one of its JSON files."""
    return json.loads((FOUNDING / name).read_text(encoding="utf-8"))


def copied(project: Project, name: str, to: str) -> Path:
    """One of its files, in the project."""
    path = project.path / to
    path.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(FOUNDING / name, path))


def key_paths(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The places of all that is not an object; a list counts by its first member."""
    if isinstance(value, Mapping) and value:
        for name, member in value.items():
            yield from key_paths(member, (*path, name))
    elif isinstance(value, list) and value and isinstance(value[0], Mapping):
        yield from key_paths(value[0], (*path, "[]"))
    else:
        yield path


def at(value: Any, path: tuple[str, ...]) -> Any:
    """What stands at such a place; KeyError or IndexError where it is not there."""
    for step in path:
        value = value[0] if step == "[]" else value[step]
    return value


def has(value: Any, path: tuple[str, ...]) -> bool:
    """Is there such a place, whatever stands in it?"""
    try:
        at(value, path)
    except (KeyError, IndexError):
        return False
    return True
