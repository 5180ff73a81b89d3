"""A disk that is full, or a folder that cannot be written: said in one line, and what was written stays."""

from __future__ import annotations

import json

import pytest
from project import Project, a_case

LIMITED = """
import resource

def pytest_runtest_setup(item):
    # As a full disk does, this stops a file from growing: 30,000 bytes, a few results.
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.RLIM_INFINITY))
"""


@pytest.mark.child_process
@pytest.mark.parametrize("how", [[], ["-n", "2"]])
def test_a_full_disk_ends_the_run_in_one_line(project: Project, how: list[str]):
    project.cases([a_case(f"q{n}", f"boiling {n}") for n in range(60)])
    project.write("conftest.py", LIMITED if not how else LIMITED.replace("runtest_setup(item)", "configure(config)"))
    result = project.run_process("-p", "no:cacheprovider", *how)  # the limit is of the process
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    output = "\n".join([*result.outlines, *result.errlines])
    assert "cannot be written to: File too large; resume the run when it can" in output
    assert "Traceback" not in output
    *whole, _torn = (project.runs[-1] / "results.jsonl").read_text(encoding="utf-8").split("\n")
    assert len(whole) > 1
    for line in whole:
        json.loads(line)
    (project.path / "conftest.py").unlink()
    project.run("--rageval-resume", "latest").assert_outcomes(passed=60)
    assert len(project.records()) == 60
