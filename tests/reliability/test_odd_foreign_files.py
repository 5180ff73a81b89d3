"""Odd files of other tools are converted whole, or refused with a reason, in little time; none is read as a program."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_rageval.cli.cases import cases as cases_command
from pytest_rageval.errors import RagevalError

pytest.importorskip("openpyxl", reason="openpyxl is not installed (pip install -e '.[dev]')")
pytest.importorskip("yaml", reason="needs the extra 'yaml'")

from odd_files import OddFile, each_of
from odd_foreign_files import FILES

LONGEST_S = 5.0
"""Processor time; what these bombs come to takes hours."""


@pytest.mark.reliability("case files", "odd JSON, YAML, workbooks and tables of other tools")
@each_of(FILES)
def test_a_file_is_converted_or_refused_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: OddFile):
    monkeypatch.chdir(tmp_path)
    Path(odd.name).write_bytes(odd.content)
    began = time.process_time()
    ended = CliRunner().invoke(cases_command, ["convert", odd.name, "-o", "out.jsonl"])
    assert time.process_time() - began < LONGEST_S
    said = ended.output + str(ended.exception or "")
    assert odd.words in said
    assert "root:" not in said
    assert not Path("pwned").exists()
    if odd.cases is None:
        assert isinstance(ended.exception, RagevalError)
        assert said.startswith(odd.name)
        assert not Path("out.jsonl").exists()
        assert all(line.isprintable() for line in said.splitlines())
    else:
        assert ended.exit_code == 0
        assert len(Path("out.jsonl").read_text(encoding="utf-8").splitlines()) == odd.cases
