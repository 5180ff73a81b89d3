"""The grammar of gates, for programs that write them."""

from __future__ import annotations

from pytest_rageval.gates.gate import CLOSED, FIELDS, GATE_FORM, GATE_PATTERN, HOLDS
from pytest_rageval.gates.regression import DEFAULT_REGRESSIONS, REGRESSION_FORM, REGRESSION_PATTERN
from pytest_rageval.model import Json


def gate_grammar() -> dict[str, Json]:
    """How a gate is written: its form, the regular expression that reads it, and what may stand in its parts."""
    return {
        "form": f"[run] {GATE_FORM}, or METRIC off",
        "pattern": GATE_PATTERN.pattern,
        "operators": list(HOLDS),
        "fields": {name: list(CLOSED[name]) if name in CLOSED else "any text" for name in FIELDS},
        "examples": ["recall_any@5 >= 0.8 when category=multi_hop", "run recall_any@5 >= 0.85", "mrr off"],
        "regression": {
            "form": REGRESSION_FORM,
            "pattern": REGRESSION_PATTERN.pattern,
            "defaults": list(DEFAULT_REGRESSIONS),
        },
    }
