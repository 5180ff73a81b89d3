"""How a value is written: None is never a number, a scale is said where it is not 0 to 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NO_VALUE = "–"


def score_text(value: float | None) -> str:
    """Three decimals, or a dash where there is none."""
    return NO_VALUE if value is None else f"{value:.3f}"


def change(delta: float | None) -> str:
    """A signed difference; what rounds to nothing is `=`."""
    if delta is None:
        return NO_VALUE
    return "=" if abs(delta) < 0.0005 else f"{delta:+.3f}"


def short(value: float) -> str:
    """Up to four digits, without zeros at the end: for gates and messages."""
    return f"{value:.4g}"


def denominator(metric: Mapping[str, Any]) -> str:
    """`30 of 42 (10 not applicable, 2 errors)`: what a mean was taken over."""
    parts = [f"{metric['n_not_applicable']} not applicable"] if metric["n_not_applicable"] else []
    if metric["n_error"]:
        parts.append(f"{metric['n_error']} error{'s' if metric['n_error'] > 1 else ''}")
    missing = metric["n_expected"] - metric["n_scored"] - metric["n_not_applicable"] - metric["n_error"]
    if missing > 0:
        parts.append(f"{missing} not run")
    return f"{metric['n_scored']} of {metric['n_expected']}" + (f" ({', '.join(parts)})" if parts else "")


def file_size(number: int) -> str:
    """Bytes as `12.3 kB` or `1,234.5 MB`."""
    return f"{number / 1e6:,.1f} MB" if number >= 100_000 else f"{number / 1e3:,.1f} kB"


def duration(milliseconds: float) -> str:
    """`340 ms` or `12.3 s`."""
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"
