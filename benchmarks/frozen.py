"""Freeze what the tool prints and writes, and compare a changed tree with it.

python benchmarks/frozen.py store [NAME ...] [-j 2]     run the scenarios, write their outputs to tests/data/frozen/
python benchmarks/frozen.py compare [NAME ...] [-j 2]   run them again, print what differs; exit status 1 if any does

The scenarios are in `frozen_scenarios.py`. They use the public command line only. Whatever differs between two runs of
the same tree is masked, for example as `<time>`; scores, p values and counts are kept as they are.
"""

from __future__ import annotations

import argparse
import difflib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from frozen_outputs import Places, environment, normalised
from frozen_scenarios import SCENARIOS, Scenario

REPOSITORY = Path(__file__).parent.parent
STORED = REPOSITORY / "tests" / "data" / "frozen"
ENVIRONMENT_FILE = STORED / "environment.txt"
PATIENCE_S = 300
SHOWN_LINES = 40
"""Lines of one difference that are printed."""
HEADING = "━━━ "
"""Starts the line above each output in a stored file."""
NEIGHBOURS = (
    "asyncio randomly sugar cov html_formatter json_report reportlog repeat rerunfailures instafail anyio timeout"
)
"""Pytest plugins of the development environment, switched off: their lines are not ours."""

Outputs = Mapping[str, str]
"""The normalised outputs of a scenario, by the command or the file that they come from."""


def run_scenario(scenario: Scenario) -> Outputs:
    """Run the commands of a scenario in a fresh folder, and return what is kept of it."""
    # Always in /tmp and of the same length: lines are wrapped after so many characters.
    root = Path(tempfile.mkdtemp(prefix="rageval-frozen-", dir="/tmp"))
    try:
        project, home = root / "project", root / "home"
        home.mkdir()
        project.mkdir()
        for name, text in scenario.files.items():
            path = project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        places = Places(project=project, home=home, repository=REPOSITORY)
        outputs = dict(_outputs_of_steps(scenario, places))
        outputs.update(_kept_files(scenario, places))
        return outputs
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _outputs_of_steps(scenario: Scenario, places: Places) -> Iterator[tuple[str, str]]:
    titles: set[str] = set()
    for step in scenario.steps:
        done = _run_step(step, places)
        if done is None:
            continue
        title = f"$ {step}"
        while title in titles:
            title += " (again)"
        titles.add(title)
        text = f"exit status {done.returncode}\n{normalised('stdout.txt', done.stdout, places)}"
        if done.stderr:
            text += f"--- stderr\n{normalised('stderr.txt', done.stderr, places)}"
        yield title, text


def _run_step(step: str, places: Places) -> subprocess.CompletedProcess[str] | None:
    """Run `pytest ...`, `rageval ...`, `cp FROM TO` or `rm FILE`; `< FILE` at the end is the standard input."""
    command, _, stdin = step.partition(" < ")
    program, *words = shlex.split(command)
    if program == "cp":
        shutil.copyfile(places.project / words[0], places.project / words[1])
        return None
    if program == "rm":
        (places.project / words[0]).unlink()
        return None
    module = {"pytest": "pytest", "rageval": "pytest_rageval"}[program]
    return subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=places.project,
        env=_variables(places),
        input=(places.project / stdin).read_text(encoding="utf-8") if stdin else "",
        capture_output=True,
        encoding="utf-8",
        errors="backslashreplace",
        check=False,
        timeout=PATIENCE_S,
    )


def _variables(places: Places) -> dict[str, str]:
    """Return all environment variables of a command; nothing of the caller's gets through."""
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "HOME": str(places.home),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "LINES": "40",
        "PYTHONHASHSEED": "0",
        "PYTEST_ADDOPTS": " ".join(f"-p no:{name}" for name in NEIGHBOURS.split()),
    }


def _kept_files(scenario: Scenario, places: Places) -> Iterator[tuple[str, str]]:
    for pattern in scenario.keep:
        paths = sorted(path for path in places.project.glob(pattern) if path.is_file())
        if not paths:
            yield pattern, "no such file\n"
        for path in paths:
            name = path.relative_to(places.project).as_posix()
            yield name, normalised(name, path.read_bytes(), places, is_digest=pattern in scenario.digests)


def stored_file(name: str) -> Path:
    return STORED / f"{name}.txt"


def as_text(outputs: Outputs) -> str:
    """Join outputs into the text of a stored file."""
    return "".join(f"{HEADING}{title}\n{text.rstrip()}\n" for title, text in outputs.items())


def read_stored(name: str) -> Outputs:
    """Read the stored outputs of a scenario; empty if none are stored."""
    path = stored_file(name)
    if not path.is_file():
        return {}
    parts = ("\n" + path.read_text(encoding="utf-8")).split("\n" + HEADING)[1:]
    return {title: text.rstrip() + "\n" for title, _, text in (part.partition("\n") for part in parts)}


def differences(name: str, outputs: Outputs) -> list[str]:
    """Return a short unified diff for each output that differs from the stored one."""
    before, after = read_stored(name), {title: text.rstrip() + "\n" for title, text in outputs.items()}
    found = []
    for title in dict.fromkeys([*before, *after]):
        old, new = before.get(title, ""), after.get(title, "")
        if old != new:
            lines = difflib.unified_diff(_lines(old), _lines(new), "stored", "now", lineterm="", n=1)
            found.append("\n".join([f"{HEADING}{name}: {title}", *_first(list(lines)[2:])]))
    return found


def _lines(text: str) -> list[str]:
    """Return the lines of a text; unlike splitlines(), end them at line feeds only."""
    return text.split("\n")


def _first(lines: list[str]) -> list[str]:
    hidden = len(lines) - SHOWN_LINES
    return [*lines[:SHOWN_LINES], *([f"... and {hidden} more lines"] if hidden > 0 else [])]


def store(scenario: Scenario) -> list[str]:
    stored_file(scenario.name).write_text(as_text(run_scenario(scenario)), encoding="utf-8")
    return []


def compare(scenario: Scenario) -> list[str]:
    return differences(scenario.name, run_scenario(scenario))


def has_stored_environment() -> bool:
    """Check that the libraries that shape the outputs have the versions of the stored ones."""
    return ENVIRONMENT_FILE.read_text(encoding="utf-8") == environment()


def chosen(names: list[str]) -> list[Scenario]:
    """Return the scenarios of these names, or all."""
    by_name = {scenario.name: scenario for scenario in SCENARIOS}
    if unknown := [name for name in names if name not in by_name]:
        sys.exit(f"no scenario {', '.join(unknown)}; there are {', '.join(by_name)}")
    return [by_name[name] for name in names or by_name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["store", "compare"])
    parser.add_argument("names", nargs="*", metavar="NAME", help="scenarios to run (default: all)")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="run N scenarios at the same time")
    options = parser.parse_intermixed_args()
    scenarios = chosen(options.names)
    STORED.mkdir(parents=True, exist_ok=True)
    if options.verb == "store":
        ENVIRONMENT_FILE.write_text(environment(), encoding="utf-8")
    elif not has_stored_environment():
        print("The stored outputs were made with other versions of libraries; differences may be theirs.")
    found: list[str] = []
    with ThreadPoolExecutor(options.j) as pool:
        for several in pool.map(store if options.verb == "store" else compare, scenarios):
            found.extend(several)
            for one in several:
                print(one, flush=True)
    print(f"{len(scenarios)} scenarios, {len(found)} outputs differ" if options.verb == "compare" else "stored")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
