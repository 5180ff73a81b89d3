"""Many cases with two workers while a twentieth of the replies are faults: memory and open files stay bounded."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Sequence

import pytest
from bucket_server import ANSWER
from fault_server import (
    Behaviour,
    Connection,
    FaultServer,
    drips,
    gives,
    hangs,
    resets,
    resets_mid_body,
    sends_raw,
    status,
    truncates,
)
from process_usage import PROC, Usage, UsageSampler
from processes import PATIENCE_S
from project import Project, a_case
from reliability import Tally

pytestmark = [
    pytest.mark.child_process,
    pytest.mark.reliability("load", "two workers, 5 % faults: memory, open files, every case once"),
    pytest.mark.skipif(not PROC.exists(), reason="reads /proc"),
]

EVERY = 20
"""Each case of this number fails."""
FAULTS: list[Behaviour] = [
    status(500, b"oops"), resets, truncates, status(200, b"{not json"), resets_mid_body,
    sends_raw(b"junk\r\n\r\n"), status(404), hangs, status(200, b'{"answer": 7}'), drips,
]  # fmt: skip
MEGABYTE = 2**20
MOST_PER_THOUSAND = 20 * MEGABYTE
LONGEST_S = 8 * PATIENCE_S
"""5,000 cases take a minute or two on two idle cores."""


async def fails_at_every_twentieth(connection: Connection) -> None:
    """Answer, but for the questions whose number has its turn."""
    number = int(re.search(rb"boiling (\d+)", connection.request.body)[1])  # type: ignore[index]
    behave = FAULTS[number // EVERY % len(FAULTS)] if number % EVERY == 0 else gives(ANSWER)
    await behave(connection)


def run_under_load(project: Project, cases: int) -> list[Usage]:
    """Run so many cases with two workers, and return what the processes used meanwhile."""
    project.cases([a_case(f"q{number}", f"boiling {number}") for number in range(cases)])
    # Long enough for a good answer on a busy machine; each that hangs or drips holds up the cases behind it so long.
    with FaultServer(fails_at_every_twentieth) as server:
        project.configure(f'target = "{server.url}"\ntimeout = 4\nretries = 0\nadaptive_concurrency = false')
        output_to = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        process = project.start("-q", "-n", "2", within_s=LONGEST_S, **output_to)
        with UsageSampler(process.pid, lambda: len(server.requests)) as sampler:
            output = process.communicate(timeout=LONGEST_S)[0].decode()
    assert process.returncode == 1, output
    # A reset in place of a reply looks like an idle connection that was closed: such a question is sent once more.
    assert cases <= len(server.requests) <= cases + cases // EVERY // len(FAULTS) + 1
    assert Counter(project.outcomes().values()) == {"passed": cases - cases // EVERY, "error": cases // EVERY}
    return sampler.samples


def asking(samples: Sequence[Usage], cases: int) -> list[Usage]:
    """The samples from when a tenth of the cases was asked: until then modules are loaded and connections opened."""
    return [sample for sample in samples if sample.done >= cases / 10]


def memory_per_thousand(samples: Sequence[Usage], cases: int) -> tuple[float, float]:
    """Growth in bytes from a tenth of the cases to the last question, and to the end, report included."""
    first, *rest = asking(samples, cases)
    thousands = (cases - first.done) / 1000
    until_asked = max(sample.resident for sample in rest if sample.done < cases)
    until_ended = max(sample.resident for sample in rest)
    return (until_asked - first.resident) / thousands, (until_ended - first.resident) / thousands


def grown_files(samples: Sequence[Usage], cases: int) -> dict[int, tuple[int, int]]:
    """The most open files of each process in the first and the second half of asking, where the second has more."""
    halves: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    for sample in asking(samples, cases):
        if sample.done < cases:
            half = halves[sample.done > cases / 2]
            for pid, number in sample.open_files.items():
                half[pid] = max(half[pid], number)
    return {pid: (halves[0][pid], number) for pid, number in halves[1].items() if number > halves[0][pid] + 4}


@pytest.mark.torture
@pytest.mark.timeout(1200)
def test_five_thousand_cases_keep_memory_and_open_files_bounded(project: Project, tally: Tally):
    tally.tried(5_000)
    samples = run_under_load(project, 5_000)
    while_asking, at_the_end = memory_per_thousand(samples, 5_000)
    megabytes = [round(bytes_used / MEGABYTE, 1) for bytes_used in (while_asking, at_the_end)]
    most_files = max(max(sample.open_files.values()) for sample in samples)
    print(f"MB for 1,000 cases while asking and with the report: {megabytes}; open files: {most_files}")
    # Three processes; as many empty tests of pytest with two workers take 15 MB for 1,000.
    assert max(while_asking, at_the_end) <= MOST_PER_THOUSAND
    assert grown_files(samples, 5_000) == {}


LOOKS = """
import gc
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    reports = [thing for thing in gc.get_objects() if isinstance(thing, pytest.TestReport)]
    with_records = [report for report in reports if "rageval" in vars(report)]
    of_scores = [report.user_properties for report in reports if report.user_properties]
    # Not from the environment: the tests themselves may run in a worker.
    process = session.config.workerinput["workerid"] if hasattr(session.config, "workerinput") else "controller"
    pairs = [pair for scores in of_scores for pair in scores]
    tuples = {id(pair) for pair in pairs}
    different = {repr(pair) for pair in pairs}
    lists = {id(scores) for scores in of_scores}
    with open(f"{process}.txt", "w") as file:
        print(len(reports), len(with_records), len(of_scores), len(lists), len(tuples) - len(different), file=file)
"""


def test_reports_that_pytest_keeps_hold_no_records_and_each_property_once(project: Project):
    project.cases([a_case(f"q{number}", f"boiling {number}") for number in range(6)])
    project.write("conftest.py", LOOKS)
    # A process of its own, not a fork: the reports of these tests are no part of it.
    process = project.start("-q", "-n", "1", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = process.communicate(timeout=PATIENCE_S)[0].decode()
    assert process.returncode == 0, output
    for name in ("controller", "gw0"):
        words = (project.path / f"{name}.txt").read_text(encoding="ascii").split()
        reports, with_records, of_scores, lists, repeated = map(int, words)
        assert reports >= 6, name
        assert with_records == 0, name
        if name == "controller":
            assert (of_scores, lists) == (12, 6)
            assert repeated == 0


def test_some_hundred_cases_keep_open_files_bounded(project: Project, tally: Tally):
    tally.tried(300)
    samples = run_under_load(project, 300)
    assert len(asking(samples, 300)) > 1
    assert grown_files(samples, 300) == {}
    # The report's templates and the last modules weigh more than 300 cases.
    assert max(sample.resident for sample in samples) < 3 * 150 * MEGABYTE
