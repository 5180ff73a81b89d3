"""A disk that is full, read-only, or has something else where a folder should be.

No run is green that could not be written, nothing is asked that cannot be kept, and earlier runs stay as they are.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
from file_systems import SmallDisk, bound_by_modes, small_disk
from processes import PATIENCE_S, rounds
from project import ALONE, Project, a_case, plain
from reliability import Tally

pytestmark = pytest.mark.child_process

COUNTING_BOT = """
import os
import bot
def answer(question):
    with open(os.path.join(os.path.dirname(__file__), "asked.txt"), "a") as file:
        file.write(question + "\\n")
    return bot.answer(question)
"""
CASES = [a_case(f"q{number}", f"boiling {number}? {'long ' * 40}") for number in range(24)]
EARLIER = "earlier"
FULL = pytest.mark.reliability("disk", "full before, during and after the cases")
READ_ONLY = pytest.mark.reliability("disk", "read-only, by mount and by mode")
IN_THE_WAY = pytest.mark.reliability("disk", "missing folders, and files in the place of folders")


@pytest.fixture
def counted(project: Project) -> Project:
    """A project whose bot notes each question outside of the reports."""
    project.write("counting.py", COUNTING_BOT)
    project.configure('target = "counting:answer"')
    project.cases(CASES)
    return project


def asked(project: Project) -> int:
    path = project.path / "asked.txt"
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


@pytest.fixture
def disk(counted: Project) -> Iterator[SmallDisk]:
    """The reports on a disk of their own, with an earlier run."""
    with small_disk(counted.path / "reports") as disk:
        counted.run("-q", "--rageval-run-id", EARLIER).assert_outcomes(passed=len(CASES))
        (counted.path / "asked.txt").unlink()
        yield disk


def contents(project: Project, run_id: str = EARLIER) -> dict[str, bytes]:
    """All files of a run."""
    folder = project.path / "reports" / "runs" / run_id
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def complaints(result: pytest.RunResult) -> str:
    """What a user reads, in which there is no traceback."""
    output = "\n".join([*result.outlines, *result.errlines])
    assert "Traceback" not in output
    assert "INTERNALERROR" not in output
    return output


def start_run(project: Project, face: str, run_id: str) -> pytest.RunResult:
    if face == "rageval run":
        return project.rageval("run", "--run-id", run_id)
    return project.run("-q", "--rageval-run-id", run_id, *face.split()[1:])


FACES = ["pytest", "pytest -n 2", "rageval run"]


@FULL
@pytest.mark.parametrize("face", FACES)
def test_a_full_disk_is_said_before_anything_is_asked(counted: Project, disk: SmallDisk, face: str):
    before = contents(counted)
    disk.leave(0)
    result = start_run(counted, face, "late")
    assert result.ret != 0
    assert "No space left on device" in complaints(result)
    assert asked(counted) == 0
    assert contents(counted) == before
    disk.make_room()
    assert start_run(counted, face, "late").ret == 0


@FULL
@pytest.mark.parametrize("face", FACES)
def test_however_much_room_is_left_no_run_is_green_that_is_not_whole(
    counted: Project, disk: SmallDisk, face: str, tally: Tally
):
    chance = random.Random(face)
    whole = json.loads((counted.path / "reports/metrics.json").read_text("utf-8"))
    del whole["volatile"]
    before = contents(counted)
    rooms = [8_192, 65_536, *(chance.randrange(500_000) for _ in range(rounds(30, 1)))]
    for number, room in enumerate(rooms):
        tally.tried()
        run_id = f"late-{number}"
        disk.leave(room)
        result = start_run(counted, face, run_id)
        complaints(result)
        assert contents(counted) == before, room
        folder = counted.path / "reports" / "runs" / run_id
        if result.ret == 0:
            assert len(counted.results(run_id)) == len(CASES), room
            assert (folder / "metrics.json").exists(), room
        disk.make_room()
        if folder.exists() and result.ret != 0:
            resumed = counted.run("-q", "--rageval-resume", run_id)
            assert resumed.ret == 0, room
            counted_once = {(record["case_key"], record["trial"]) for record in counted.results(run_id)}
            assert len(counted_once) == len(counted.results(run_id)) == len(CASES), room
            metrics = counted.metrics()
            del metrics["volatile"]
            assert metrics == whole, room
        if folder.exists():
            shutil.rmtree(folder)


READERS = {
    "score": ("score", EARLIER),
    "report": ("report", EARLIER, "-o", "reports/page.html"),
    "export": ("export", EARLIER, "--format", "csv", "-o", "reports/cases.csv"),
    "compare": ("compare", EARLIER, EARLIER, "--format", "html", "-o", "reports/compared.html"),
    "merge": ("merge", EARLIER, "--run-id", "merged"),
    "cases": ("cases", "convert", "evalcases/a.jsonl", "-o", "reports/cases.jsonl"),
}


@FULL
@READ_ONLY
@pytest.mark.parametrize("verb", READERS)
@pytest.mark.parametrize("state", ["full", "read-only"])
def test_a_verb_that_cannot_write_is_one_line_and_changes_nothing(
    counted: Project, disk: SmallDisk, verb: str, state: str
):
    before = contents(counted)
    if state == "full":
        disk.leave(0)
    else:
        disk.make_read_only()
    result = counted.rageval(*READERS[verb])
    output = complaints(result)
    disk.make_room() if state == "full" else disk.make_writable()
    assert result.ret != 0, output
    assert ("No space left" if state == "full" else "Read-only file system") in output
    assert contents(counted) == before


@READ_ONLY
@pytest.mark.parametrize("face", FACES)
def test_a_read_only_disk_is_said_before_anything_is_asked(counted: Project, disk: SmallDisk, face: str):
    before = contents(counted)
    disk.make_read_only()
    result = start_run(counted, face, "late")
    disk.make_writable()
    assert result.ret not in (0, 1)
    assert "set another" in complaints(result)
    assert asked(counted) == 0
    assert contents(counted) == before


@READ_ONLY
@pytest.mark.parametrize("place", ["reports", "reports/runs"])
@pytest.mark.parametrize("verb", ["pytest", "rageval run"])
def test_a_folder_of_somebody_else_is_said_before_anything_is_asked(counted: Project, place: str, verb: str):
    folder = counted.path / place
    folder.mkdir(parents=True)
    folder.chmod(0o555)
    module = ("-m", "pytest_rageval", "run") if verb == "rageval run" else ("-m", "pytest", *plain(()))
    try:
        result = counted.process(*bound_by_modes(sys.executable, *module), **ALONE)
    finally:
        folder.chmod(0o755)
    assert result.ret not in (0, 1)
    assert "Permission denied" in complaints(result) or "cannot be written to" in complaints(result)
    assert asked(counted) == 0


@IN_THE_WAY
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("place", ["reports", "reports/runs", "reports/runs/late"])
def test_a_file_where_a_folder_should_be_is_said_before_anything_is_asked(counted: Project, place: str, face: str):
    counted.write(place, "a note of mine\n")
    result = start_run(counted, face, "late")
    assert result.ret not in (0, 1)
    assert place.rpartition("/")[2] in complaints(result)
    assert asked(counted) == 0
    assert (counted.path / place).read_text(encoding="utf-8") == "a note of mine\n"


@IN_THE_WAY
@pytest.mark.parametrize("face", FACES)
def test_folders_that_are_missing_are_made(counted: Project, face: str):
    counted.configure('target = "counting:answer"\nreports = "not/yet/there"')
    assert start_run(counted, face, "first").ret == 0
    assert (counted.path / "not/yet/there/runs/first/report.html").exists()


@IN_THE_WAY
@pytest.mark.parametrize("face", FACES)
def test_a_link_that_leads_nowhere_is_said_before_anything_is_asked(counted: Project, face: str):
    (counted.path / "reports").symlink_to(counted.path / "gone" / "away")
    result = start_run(counted, face, "late")
    assert asked(counted) == (len(CASES) if result.ret == 0 else 0)
    complaints(result)
    assert (result.ret == 0) is (counted.path / "gone/away/runs/late/metrics.json").exists()


@pytest.mark.reliability("disk", "two runs in one second, readers and damaged parts")
@pytest.mark.parametrize("names", [("", ""), ("same", "same")], ids=["unnamed", "of one name"])
def test_two_runs_that_begin_at_once_do_not_mix(counted: Project, names: tuple[str, str], tally: Tally):
    for _ in range(rounds(20, 1)):
        tally.tried()
        started = []
        for name in names:
            options = ("--rageval-run-id", name) if name else ()
            started.append(counted.start("-q", *options, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        outputs = [process.communicate(timeout=PATIENCE_S)[0].decode() for process in started]
        codes = sorted(process.returncode for process in started)
        assert codes == ([0, 0] if names[0] == "" else [0, 4]), outputs
        assert not any("Traceback" in output for output in outputs)
        for run in counted.runs:
            assert len(counted.results(run.name)) == len(CASES)
            assert json.loads((run / "metrics.json").read_text("utf-8"))["outcomes"]["passed"] == len(CASES)
        assert len(counted.runs) == (2 if names[0] == "" else 1)
        assert asked(counted) == len(CASES) * len(counted.runs)
        for run in counted.runs:
            shutil.rmtree(run)
        os.unlink(counted.path / "asked.txt")
