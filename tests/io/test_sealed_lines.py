"""Lines with a checksum: whatever changes one is noticed, and lines that were written before checksums are read."""

from __future__ import annotations

import functools
import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_rageval.io import sealed_lines
from pytest_rageval.io.sealed_lines import DamagedLineError, compact_json, sealed_line, unsealed

pytestmark = pytest.mark.reliability("disk", "changed bits, cut and edited lines", costs="false green")
RECORD = {"schema": 2, "case_key": "evalcases/a.jsonl::남산", "scores": {"mrr": 0.5}}
LINE = sealed_line(RECORD)


def test_the_checksum_is_the_last_key_and_the_crc_of_what_stands_before_it():
    assert sealed_line({"a": 1}) == b'{"a":1,"checksum":"a702fc6e"}'
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
    with pytest.raises(DamagedLineError, match="has no checksum at its end"):
        unsealed(json.dumps(RECORD).encode())


def test_a_line_beyond_all_measure_is_not_parsed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sealed_lines, "LONGEST", len(LINE) - 1)
    with pytest.raises(DamagedLineError, match="is longer than"):
        unsealed(LINE)


def as_the_standard_library_writes_it(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


PARTS = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(PARTS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


@given(VALUES)
@example({"of": [1e-4, math.nextafter(1e-4, 0), 5e-324, -0.0, 1e16, 1.7e308, -(2**64), 10**40, "NaN", "Infinity"]})
def test_a_value_reads_back_as_it_was_written(value: Any):
    assert repr(json.loads(compact_json(value))) == repr(value)


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


def nested() -> list[Any]:
    """Deeper than any stack."""
    return functools.reduce(lambda inner, _: [inner], range(200_000), [])


@pytest.mark.parametrize(
    "value",
    [math.nan, -math.inf, object(), "\ud800", {"\ud800": 1}, ENDLESS, nested],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_form_as_strict_json_is_refused_in_the_words_of_the_standard_library(value: Any):
    value = value() if value is nested else value
    with pytest.raises((ValueError, TypeError, RecursionError)) as expected:
        as_the_standard_library_writes_it({"a": value})
    with pytest.raises(type(expected.value)) as refused:
        sealed_line({"a": value})
    assert str(refused.value) == str(expected.value)
