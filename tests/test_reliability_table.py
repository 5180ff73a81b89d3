"""The table of reliability counts what was tried, and does not count a failed test as survived."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from processes import python

MARKED = """
import pytest
from reliability import Tally

@pytest.fixture
def tally():
    return Tally()

@pytest.mark.reliability("crashes", "kill -9")
@pytest.mark.parametrize("number", range(3))
def test_survived(number):
    pass

@pytest.mark.reliability("crashes", "kill -9", costs="false green")
def test_failed(tally):
    tally.tried(20)
    assert False

@pytest.mark.reliability("crashes", "never tried")
def test_skipped():
    pytest.skip("not here")
"""
CONFTEST = """
from pathlib import Path
from reliability import ReliabilityTable

def pytest_configure(config):
    config.pluginmanager.register(ReliabilityTable(Path("table.md")))
    config.addinivalue_line("markers", "reliability(area, attack, costs)")
"""


@pytest.mark.child_process
@pytest.mark.parametrize("how", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_rounds_are_added_up_by_what_a_failure_costs(tmp_path: Path, how: list[str]):
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_marked.py").write_text(MARKED, encoding="utf-8")
    support = str(Path(__file__).parent / "support")
    result = python("-m", "pytest", "-q", *how, cwd=tmp_path, env=os.environ | {"PYTHONPATH": support})
    assert "1 failed, 3 passed, 1 skipped" in result.stdout
    assert (tmp_path / "table.md").read_text(encoding="utf-8").splitlines()[2:] == [
        "| crashes | kill -9 | 4 | 23 | 3 | 0 | 20 | 0 |",
        "| **all** |  | 4 | 23 | 3 | 0 | 20 | 0 |",
    ]
