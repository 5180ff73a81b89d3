"""Lines with a checksum: whatever changes one is noticed, and lines that were written before checksums are read."""

from __future__ import annotations

import json

import pytest

from pytest_rageval.io import sealed_lines
from pytest_rageval.io.sealed_lines import DamagedLineError, sealed, unsealed

RECORD = {"schema": 2, "case_key": "evalcases/a.jsonl::남산", "scores": {"mrr": 0.5}}
LINE = sealed(json.dumps(RECORD, ensure_ascii=False, separators=(",", ":"))).encode()


def test_the_checksum_is_the_last_key_and_the_crc_of_what_stands_before_it():
    assert sealed('{"a":1}') == '{"a":1,"checksum":"a702fc6e"}'
    assert list(json.loads(LINE)) == [*RECORD, "checksum"]


@pytest.mark.parametrize("line", [LINE, LINE + b"\n"])
def test_a_line_is_read_without_its_checksum(line: bytes):
    assert unsealed(line) == RECORD


def test_any_changed_bit_is_noticed():
    for place in range(len(LINE)):
        for bit in range(8):
            changed = bytearray(LINE)
            changed[place] ^= 1 << bit
            with pytest.raises(DamagedLineError):
                unsealed(bytes(changed))


def test_a_line_cut_anywhere_is_noticed():
    for length in range(len(LINE)):
        with pytest.raises(DamagedLineError):
            unsealed(LINE[:length])


def test_a_line_that_was_edited_is_noticed_whatever_became_of_its_checksum():
    with pytest.raises(DamagedLineError, match="does not match its checksum"):
        unsealed(LINE.replace(b"0.5", b"1.0"))
    with pytest.raises(DamagedLineError, match="has lost its checksum"):
        unsealed(json.dumps(RECORD).encode())


def test_a_line_of_the_older_schema_has_none_and_is_read_strictly():
    assert unsealed(b'{"schema":1,"case_key":"a"}\n') == {"schema": 1, "case_key": "a"}
    with pytest.raises(DamagedLineError, match="case_key stands twice"):
        unsealed(b'{"schema":1,"case_key":"a","case_key":"b"}\n')
    with pytest.raises(DamagedLineError, match="is not a JSON object"):
        unsealed(b"[1]\n")


def test_a_line_beyond_all_measure_is_not_parsed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sealed_lines, "LONGEST", len(LINE) - 1)
    with pytest.raises(DamagedLineError, match="is longer than"):
        unsealed(LINE)
