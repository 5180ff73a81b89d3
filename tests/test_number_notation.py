"""Numbers in messages, gates and reports: plain decimals, also for what one answer costs."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from project import Project, a_case

from pytest_rageval.text import plain, short

POWER = "e-0"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00001, "0.00001"),
        (1e-9, "0.000000001"),
        (0.3, "0.3"),
        (0.1 + 0.2, "0.3"),
        (0.000123456789, "0.000123456789"),
        (-0.00002, "-0.00002"),
        (1_200_000, "1200000"),
        (1_234_567.25, "1234567.25"),
        (85, "85"),
        (0, "0"),
    ],
)
def test_a_limit_is_shown_as_it_can_be_written(value: float, text: str):
    assert plain(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.00001, "0.00001"), (0.000123456, "0.0001235"), (0.85, "0.85"), (12_345.6, "12,346")]
)
def test_a_value_has_four_digits(value: float, text: str):
    assert short(value) == text


@given(st.floats(min_value=-1e14, max_value=1e14))
def test_what_is_shown_reads_as_the_number_and_has_no_exponent_for_usual_sizes(value: float):
    text = plain(value)
    assert math.isclose(float(text), value, rel_tol=1e-11, abs_tol=1e-300)
    assert ("e" in text) == (0 < abs(value) < 1e-9)


def test_a_gate_on_tiny_amounts_has_one_notation_in_every_face(project: Project):
    project.write("paid.py", "def answer(q):\n    return {'answer': '100 degrees', 'usage': {'cost_usd': 0.00012}}\n")
    project.configure(
        'target = "paid:answer"\n[tool.rageval.gates]\ncase = ["cost_usd <= 1e-05"]\nrun = ["cost_usd <= 0.00002"]'
    )
    project.cases([a_case("boil")])
    shown = project.run().stdout.str()
    assert "cost_usd is 0.00012, gate <= 0.00001" in shown
    assert "0.00002" in shown
    run = project.runs[-1]
    explained = project.rageval("explain", "latest", "boil").stdout.str()
    (record,) = (run / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert [gate["threshold"] for gate in json.loads(record)["verdict"]["failed_gates"]][:1] == ["<= 0.00001"]
    summary = (run / "summary.md").read_text(encoding="utf-8")
    for text in (shown, explained, summary):
        assert "0.00001" in text
        assert POWER not in text
