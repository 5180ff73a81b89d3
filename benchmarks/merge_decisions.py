"""Which tool says that a change made a bot worse: `python benchmarks/merge_decisions.py [NAME…]`.

The same ten questions, with the check that each tool documents for "the answer contains this text", and with its
defaults otherwise. No model is asked. Prints a table: the exit code of each tool for each version of the bot.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from environments import OFFLINE, CannotBeInstalled, Peer, installed

FOLDER = Path(__file__).parent / "same_questions"
_BOT = runpy.run_path(str(FOLDER / "bot.py"))
FACTS: dict[str, str] = _BOT["FACTS"]
VERSIONS = tuple(_BOT["WRONG"])
OURS = "pytest-rageval"
ARGUMENTS = {
    "deepeval": ["-c", "from deepeval.cli.main import app; app()", "test", "run", "test_with_deepeval.py"],
    "langsmith": ["-m", "pytest", "-q", "test_with_langsmith.py"],
    "inspect-ai": ["-m", "inspect_ai", "eval", "questions_inspect.py", "--model", "none", "--display", "plain"],
    "pydantic-evals": ["questions_pydantic_evals.py"],
    "ragas": ["questions_ragas.py"],
}
LIMIT_S = 300


def project(folder: Path) -> None:
    """Write the bot, the files of all tools, and the questions as cases of ours and tests of promptfoo."""
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "evalcases").mkdir()
    with (folder / "evalcases" / "shop.jsonl").open("w", encoding="utf-8") as file:
        for number, (question, fact) in enumerate(FACTS.items(), start=1):
            case = {"id": f"shop-{number}", "question": question, "gold": {"answer": fact}}
            file.write(json.dumps(case) + "\n")
    settings = '[tool.rageval]\ntarget = "bot:answer"\nknown_failures = "ratchet"\n'
    (folder / "pyproject.toml").write_text(settings, encoding="utf-8")
    tests = []
    for question, fact in FACTS.items():
        tests.append({"vars": {"question": question}, "assert": [{"type": "contains", "value": fact}]})
    configuration = {"prompts": ["{{question}}"], "providers": ["file://promptfoo_provider.py"], "tests": tests}
    (folder / "promptfooconfig.json").write_text(json.dumps(configuration), encoding="utf-8")


def commands(name: str) -> tuple[list[str], dict[str, str], str]:
    """Give the command of a tool, its environment and its version."""
    if name == OURS:
        return [sys.executable, "-m", "pytest", "-q", "evalcases"], OFFLINE, ""
    peer: Peer = installed(name)
    environment = peer.environment(Path(tempfile.gettempdir())) | {"LANGSMITH_TEST_TRACKING": "false"}
    if name == "promptfoo":
        program = environment["PROMPTFOO"]
        return [program, "eval", "-c", "promptfooconfig.json", "--no-cache", "--no-table"], environment, peer.version
    return [str(peer.interpreter), *ARGUMENTS[name]], environment, peer.version


def exit_codes(name: str) -> tuple[str, list[int]]:
    """Run each version of the bot, after ours has accepted the first as its baseline."""
    command, environment, version = commands(name)
    codes = []
    with tempfile.TemporaryDirectory(prefix="same-questions-") as place:
        folder = Path(place) / "project"
        project(folder)
        if name == OURS:
            _run([*command, "--rageval-update-baseline"], environment, folder, "before")
        codes += [_run(command, environment, folder, bot) for bot in VERSIONS]
    return version, codes


def _run(command: Sequence[str], environment: dict[str, str], folder: Path, bot: str) -> int:
    variables = os.environ | environment | {"BOT": bot, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    last = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()][-12:]
    print(f"--- {Path(command[0]).name} {bot}: exit code {done.returncode}", *last, sep="\n", file=sys.stderr)
    return done.returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", default=[OURS, *ARGUMENTS, "promptfoo"])
    print("| tool | " + " | ".join(VERSIONS) + " |")
    print("| --- |" + " --: |" * len(VERSIONS))
    for name in parser.parse_args().names:
        try:
            version, codes = exit_codes(name)
        except CannotBeInstalled as error:
            print(f"| {name} | {error} |")
            continue
        print(f"| {name} {version}".rstrip() + " | " + " | ".join(map(str, codes)) + " |", flush=True)


if __name__ == "__main__":
    main()
