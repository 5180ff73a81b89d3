"""`rageval run` on workers, processes of this machine or of a Ray cluster: as one process, and with workers, machines
and the command itself killed in the middle."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import ending, kill, wait_until
from project import Project, a_case, a_missed_case
from stored_runs import stable_bytes

pytestmark = pytest.mark.child_process

ROOT = Path(__file__).parents[2]
MACHINE = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
BOT = """
import os, signal, time, bot

def answer(question):
    with open("asked", "a") as log:
        log.write(f"{os.getpid()} {question.split()[0]}\\n")
    if "slow" in question:
        time.sleep(0.1)
    if "stuck" in question:
        while not os.path.exists("go-on"):
            time.sleep(0.02)
    if "deadly" in question and not os.path.exists("survive"):
        if "once" in question:
            open("survive", "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return bot.answer(question)
"""


class Workers:
    """Two processes of this machine, and the command that has them."""

    options: tuple[str, ...] = ("--workers", "2")

    def run(self, project: Project, *options: str) -> pytest.RunResult:
        return project.rageval("run", *self.options, *options)

    def start(self, project: Project, *options: str) -> subprocess.Popen[bytes]:
        return project.start_process(
            "-m", "pytest_rageval", "run", *self.options, *options,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip


class Machines(Workers):
    """The same on a Ray cluster of two machines."""

    def __init__(self) -> None:
        self.ray = pytest.importorskip("ray.cluster_utils", reason="pip install 'pytest-rageval[ray]'")
        self.cluster = self.ray.Cluster(initialize_head=True, head_node_args=MACHINE)
        self.cluster.add_node(**{name: value for name, value in MACHINE.items() if name != "include_dashboard"})
        self.options = ("--engine", "ray", "--address", self.cluster.address)

    def logs(self) -> str:
        """All that Ray has written."""
        folder = Path(self.cluster.head_node.get_session_dir_path()) / "logs"
        return "".join(path.read_text("utf-8", "replace") for path in folder.rglob("*") if path.is_file())

    def jobs(self) -> set[str]:
        """What Ray knows of the programs that used the cluster."""
        client = self.ray.ray._raylet.GcsClient(address=self.cluster.address)
        return {job.entrypoint for job in client.get_all_job_info().values()}


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        started = Machines()
        yield started
        started.cluster.shutdown()


@pytest.fixture(params=["process", "ray"])
def workers(request: pytest.FixtureRequest) -> Workers:
    if request.param == "process":
        return Workers()
    return request.getfixturevalue("machines")


OF_THE_CLOCK = ("latency", "operations", "checksum", "cost", "timings", "judgements")


def lines_of(run: Path, name: str = "results.jsonl") -> list[dict[str, Any]]:
    """Records in the order of the file, without what the clock decides."""
    records = [json.loads(line) for line in (run / name).read_text(encoding="utf-8").rstrip("\n").split("\n")]
    for record in records:
        if isinstance(record["answer"], dict):  # in observations
            record["answer"].get("debug", {}).pop("latency", None)
            record["answer"].pop("latency", None)
            record.get("dialogue", {}).pop("conversation_id", None)  # a new one in each run
    return [{key: value for key, value in record.items() if key not in OF_THE_CLOCK} for record in records]


def assert_same(run: Path, other: Path) -> None:
    """All that stands in their files is equal, volatile parts aside."""
    assert stable_bytes(run) == stable_bytes(other)
    assert lines_of(run) == lines_of(other)
    by_place = sorted(lines_of(other, "observations.jsonl"), key=lambda line: (*line["case"]["source"], line["trial"]))
    assert lines_of(run, "observations.jsonl") == by_place
    assert {path.name for path in run.iterdir()} == {path.name for path in other.iterdir()}


def asked(project: Project) -> list[str]:
    """Of each question that was asked its first word."""
    return [line.split()[1] for line in (project.path / "asked").read_text().splitlines()]


def processes_that_asked(project: Project) -> set[str]:
    log = project.path / "asked"
    return {line.split()[0] for line in log.read_text().splitlines()} if log.exists() else set()


def is_alive(process: str) -> bool:
    """Does it run? What is dead and not yet waited for does not."""
    stat = Path("/proc") / process / "stat"
    return stat.exists() and ") Z " not in stat.read_text()


def records_on_disk(project: Project) -> int:
    return sum(path.read_bytes().count(b"\n") for path in project.path.glob("reports/runs/*/results.jsonl"))


@pytest.fixture
def asking(project: Project) -> Project:
    project.write("noted.py", BOT)
    project.configure('target = "noted:answer"\nconcurrency = 4')
    return project


def test_records_metrics_and_exit_code_on_the_demo_are_those_of_one_process(project: Project, workers: Workers):
    shutil.copytree(ROOT / "evalcases", project.path / "evalcases")
    (project.path / "reports").mkdir()
    shutil.copy(ROOT / "reports" / "baseline.json", project.path / "reports")
    project.configure('target = "demo"\nknown_failures = "ratchet"')
    one = project.rageval("run", "--run-id", "one")
    cluster = workers.run(project, "--run-id", "cluster")
    assert (one.ret, cluster.ret) == (0, 0)
    runs = project.path / "reports" / "runs"
    assert_same(runs / "cluster", runs / "one")
    assert "154 cases on 2 workers" in cluster.outlines
    assert not [line for line in (*cluster.outlines, *cluster.errlines) if "ray" in line.replace("runs/", "").lower()]


@pytest.mark.parametrize("options", [(), ("--repeat", "2", "--redact")])
def test_recorded_answers_with_failures_errors_and_gates_come_to_the_same(
    project: Project, workers: Workers, options: tuple[str, ...]
):
    project.cases([a_missed_case(f"q{n}") if n % 5 == 2 else a_case(f"q{n}") for n in range(40)])
    answers = [{"id": f"q{n}", "answer": "Water boils.", "retrieved_chunks": [
        {"chunk_id": "c", "rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling", "text": "t"}
    ]} for n in range(37)]  # fmt: skip
    project.write("answers.jsonl", "".join(json.dumps(answer) + "\n" for answer in answers))
    project.configure('target = "answers:answers.jsonl"', '[tool.rageval.gates]\nrun = ["recall_any@5 >= 0.99"]')
    options = ("--allow-partial", *options)
    one = project.rageval("run", "--run-id", "one", *options)
    cluster = workers.run(project, "--run-id", "cluster", *options)
    assert (one.ret, cluster.ret) == (1, 1)
    runs = project.path / "reports" / "runs"
    assert stable_bytes(runs / "cluster") == stable_bytes(runs / "one")
    assert lines_of(runs / "cluster") == lines_of(runs / "one")
    failed = [line for line in one.outlines if line.startswith("FAILED")]
    assert sorted(line for line in cluster.outlines if line.startswith("FAILED")) == sorted(failed) != []


def test_a_target_that_is_not_there_on_the_workers_is_a_line_and_exit_code_4(project: Project, workers: Workers):
    only_here = f"import os\nif os.getpid() != {os.getpid()}:\n    raise ImportError('not on this machine')\n"
    project.write("here.py", only_here + "from bot import answer\n")
    project.configure('target = "here:answer"')
    project.cases([a_case("q")])
    result = workers.run(project)
    assert result.ret == 4
    assert [line for line in result.errlines if line.startswith("ERROR: no worker can take part: ")
            and "not on this machine" in line]  # fmt: skip
    assert len(result.errlines) == 1
    assert not project.runs


def test_no_more_cases_are_in_flight_than_one_process_may_have(asking: Project, workers: Workers):
    asking.configure('target = "noted:answer"\nconcurrency = 1')
    asking.cases([a_case("q")])
    assert "1 case on 1 worker" in workers.run(asking).outlines
    assert workers.run(asking, "--workers", "5", "--concurrency", "3").ret == 0


def test_a_worker_that_is_killed_costs_a_retry_and_nothing_else(asking: Project, workers: Workers):
    cases = [a_case(f"q{n}", f"q{n} slow boiling{' deadly once' if n == 9 else ''}") for n in range(24)]
    asking.cases(cases)
    result = workers.run(asking, "--run-id", "cluster")
    assert result.ret == 0
    assert [line for line in result.outlines if line.startswith("a worker was lost (") and "went to another" in line]
    assert asking.rageval("run", "--run-id", "one").ret == 0
    runs = asking.path / "reports" / "runs"
    assert stable_bytes(runs / "cluster") == stable_bytes(runs / "one")
    assert lines_of(runs / "cluster") == lines_of(runs / "one")


def test_a_case_that_kills_every_worker_is_an_error_and_the_others_pass(asking: Project, workers: Workers):
    asking.cases([a_case(f"q{n}", f"q{n} boiling{' deadly' if n == 3 else ''}") for n in range(6)])
    assert workers.run(asking).ret == 1
    assert asking.outcomes() == {f"q{n}": "error" if n == 3 else "passed" for n in range(6)}
    error = asking.records()["q3"]["error"]
    assert error["kind"] == "crash"
    assert error["message"].startswith("each worker that asked it was lost")


def test_a_machine_that_goes_down_costs_a_retry_and_nothing_else(
    asking: Project, machines: Machines, monkeypatch: pytest.MonkeyPatch
):
    asking.cases([a_case(f"q{n}", f"q{n} stuck boiling") for n in range(60)])
    machine = machines.cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
    monkeypatch.setenv("OPENAI_API_KEY", "planted-in-the-environment")
    process = machines.start(asking, "--workers", "3", "--run-id", "cluster", "--description", "planted-as-an-argument")
    wait_until(lambda: len(processes_that_asked(asking)) == 3, "all three machines ask", process)
    workers = processes_that_asked(asking)
    machines.cluster.remove_node(machine, allow_graceful=False)
    wait_until(lambda: any(not is_alive(worker) for worker in workers), "the worker there has died", process)
    asking.write("go-on", "")
    output = ending(process).decode()
    assert process.returncode == 0, output
    assert "a worker was lost (" in output
    assert machines.jobs() == {"rageval run --engine ray"}
    assert "planted" not in machines.logs()
    assert asking.rageval("run", "--run-id", "one", "--description", "planted-as-an-argument").ret == 0
    runs = asking.path / "reports" / "runs"
    assert stable_bytes(runs / "cluster") == stable_bytes(runs / "one")
    assert lines_of(runs / "cluster") == lines_of(runs / "one")


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.torture)]
)
def test_a_run_that_is_ended_can_be_read_and_finished(asking: Project, workers: Workers, number: signal.Signals):
    asking.cases([a_case(f"q{n}", f"q{n} boiling{' stuck' if n > 5 else ''}") for n in range(12)])
    process = workers.start(asking, "--run-id", "ended")
    wait_until(lambda: records_on_disk(asking) >= 6, "the quick cases are recorded", process)
    if number == signal.SIGKILL:
        kill(process)
    else:
        process.send_signal(number)
    output = ending(process).decode()
    assert process.returncode == (-9 if number == signal.SIGKILL else 2), output
    recorded = set(asking.records())
    assert len(recorded) >= 6
    if number != signal.SIGKILL:
        assert "rageval run --resume ended finishes" in output
        assert "Traceback" not in output
        assert asking.metrics()["partial"]
        assert len(recorded) == asking.metrics()["selection"]["recorded"]
    asking.write("go-on", "")
    (asking.path / "asked").unlink()
    assert workers.run(asking, "--resume", "ended").ret == 0
    assert set(asked(asking)) == {f"q{n}" for n in range(12)} - recorded
    assert asking.rageval("run", "--run-id", "whole").ret == 0
    runs = asking.path / "reports" / "runs"
    assert stable_bytes(runs / "ended") == stable_bytes(runs / "whole")
    assert lines_of(runs / "ended") == lines_of(runs / "whole")


def test_a_cluster_of_this_machine_alone_is_started_and_ended(asking: Project):
    pytest.importorskip("ray.cluster_utils", reason="pip install 'pytest-rageval[ray]'")
    asking.cases([a_case("q", "q boiling")])
    process = asking.start_process(
        "-m", "pytest_rageval", "run", "--engine", "ray", "--address", "local", "--workers", "1",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    output = ending(process).decode()
    assert process.returncode == 0, output
    assert "1 case on 1 worker" in output
    assert "ray" not in output.replace("/ray", "").replace("--engine ray", "").lower(), "nothing of Ray's own is shown"
