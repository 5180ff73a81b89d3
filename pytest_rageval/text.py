"""Text as people type and read it: names between commas, counted nouns, printable characters, excerpts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


def names_of(written: str | None) -> tuple[str, ...]:
    """Split a list of names at its commas."""
    return tuple(name.strip() for name in (written or "").split(",") if name.strip())


def counted(number: int, noun: str, plural: str = "") -> str:
    """Format a number with its noun: `1 case`, `1,200 cases`; `plural` if it is not the noun and an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def printable(text: str) -> str:
    r"""Escape visibly what could steer or break a terminal, a report or a file.

    Escaped are control characters other than newline and tab (`\x1b`), lone surrogates (`\ud800`), the marks that
    reverse the direction of writing (`\u202e`), and what a CI service would take for a command in its log: `::` at
    the start of a line (`\x3a:`), `##[`, `##vso[` and `##teamcity[` anywhere (`\x23#[`). The result can always be
    encoded as UTF-8.
    """
    has_hashes = "##" in text and _HASHES.search(text) is not None  # headings are in every page, commands in none
    if has_hashes or ("::" in text and (text.lstrip().startswith("::") or _LINE_OF_COLONS.search(text))):
        text = _COMMAND.sub(_without_command, text)
    # Most of a page is plain ASCII: to search only the rest takes an eighth of the time.
    is_harmless = text.isprintable() or text.encode(*_UTF_8).translate(None, _PLAIN).decode(*_UTF_8).isprintable()
    return text if is_harmless else _UNPRINTABLE.sub(lambda match: _escaped(ord(match.group())), text)


def cut(text: str, most: int) -> str:
    """Shorten a text to `most` characters, marked by `…`, so that the rest of a credential can be masked."""
    return text if len(text) <= most else text[: most - 1] + "…"


def excerpt(text: str, most: int = 200) -> str:
    """Return the beginning of a text for a message: printable, on one line, with `…` if it was cut."""
    line = printable(" ".join(text[: 4 * most].split()))
    return cut(line if len(text) <= 4 * most else f"{line}…", most)


def _without_command(match: re.Match[str]) -> str:
    return f"{match['before'] or ''}{_escaped(ord(match[0][-1]))}"


def _escaped(codepoint: int) -> str:
    return f"\\x{codepoint:02x}" if codepoint < 0x100 else f"\\u{codepoint:04x}"


# GitHub reads `::name values::text` after leading white space and `##[name]` anywhere; Azure `##vso[name]` and TeamCity
# `##teamcity[name]` anywhere. Any other service that runs what a log says is expected to write `##name[` as well. What
# GitLab, Buildkite and Travis read only folds lines; GitLab's needs an escape character, which is shown as `\x1b`.
_HASHES = re.compile(r"##[a-z]{0,20}\[", re.IGNORECASE)
_LINE_OF_COLONS = re.compile(r"\n[^\S\n]*::")
# Not `\s*`: over n empty lines that takes n² steps.
_COMMAND = re.compile(r"(?P<before>^[^\S\n]*):(?=:[a-z-]+[^\n]*?::)|#(?=#[a-z]{0,20}\[)", re.MULTILINE | re.IGNORECASE)
_UTF_8 = ("utf-8", "surrogatepass")
_PLAIN = bytes([*b"\n\t", *range(0x20, 0x7F)])
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────


NO_VALUE = "–"


def score_text(value: float | None, unit: str | None = None) -> str:
    """Format a score with three decimals, or an amount in its unit; a dash for None."""
    if value is None:
        return NO_VALUE
    return f"{value:.3f}" if unit is None else amount_text(value, unit)


def change(delta: float | None, unit: str | None = None) -> str:
    """Format a signed difference, of amounts in their unit; one that rounds to zero is `=`."""
    if delta is None:
        return NO_VALUE
    if unit is None:
        return "=" if abs(delta) < 0.0005 else f"{delta:+.3f}"
    size = amount_text(abs(delta), unit)
    if size == amount_text(0, unit):
        return "="
    return f"+{size}" if delta > 0 else f"-{size}"


def amount_text(value: float, unit: str) -> str:
    """Format an amount in its unit: `340 ms`, `12.3 s`, `1,204`, `$0.0042`."""
    if unit == "ms":
        return duration(value)
    if unit == "US dollars":
        return dollars_text(value)
    return f"{value:,.0f}" if unit == "tokens" or value == int(value) else f"{value:,.2f}"


def dollars_text(value: float) -> str:
    """Format US dollars with enough digits for what one answer costs: `$12.30`, `$0.0421`, `$0.000484`."""
    if value >= 1:
        return f"${value:,.2f}"
    if value >= 0.01 or value == 0:
        return f"${value:.4f}"
    return f"${value:.6f}"


def percent(share: float) -> str:
    """Format a share as `12 %`."""
    return f"{share:.0%}".replace("%", " %")


AS_WRITTEN = 12
"""Digits that give back what a person wrote, without the last ones of binary fractions: 0.3, not 0.300000000000004."""
SMALLEST_PLAIN = 1e-9
LARGEST_PLAIN = 1e15
"""Numbers beyond these limits are shown in powers of ten: their zeros cannot be counted at a glance."""


def plain(value: float, digits: int = AS_WRITTEN) -> str:
    """Format a number with its first digits as plain decimals, as a limit in a file is read: `0.00001`, `1200000`.

    Only what is smaller than nine decimals, or has more than fifteen digits before the point, is in powers of ten.
    """
    rounded = f"{value:.{digits}g}"
    mantissa, power, exponent = rounded.partition("e")
    if not power or not SMALLEST_PLAIN <= abs(value) < LARGEST_PLAIN:
        return rounded
    known_digits = len(mantissa.lstrip("-").replace(".", ""))
    decimals = max(0, known_digits - 1 - int(exponent))
    return f"{float(rounded):.{decimals}f}"


def short(value: float, digits: int = 4) -> str:
    """Format a number with four digits, without trailing zeros, for gates and messages; a large one as a whole."""
    return f"{value:,.0f}" if 10_000 <= abs(value) < LARGEST_PLAIN else plain(value, digits)


MOST_DECIMALS = 3
_FURTHEST_DECIMAL = 9


def figures(*values: float, limit: float | None = None) -> list[str]:
    """Format the values of one metric with the same number of decimals, three at most.

    There are more where two different values would look equal, or one would look like 0 or like the `limit` that it
    is held against: `0.8496` is below 0.85, and must not be shown as `0.85`.
    """
    decimals = max(_decimals(value) for value in values)
    known = {*values, 0.0}
    if limit is not None:
        known.add(limit)
    for enough in range(decimals, _FURTHEST_DECIMAL):
        if len({round(value, enough) for value in known}) == len(known):
            return [f"{value:,.{enough}f}" for value in values]
    return [short(value) for value in values]


def _decimals(value: float) -> int:
    """Return how many decimals a value needs: 0 for 12, 2 for 0.25, 3 for 1/3, 1 for 801.633 milliseconds."""
    whole_digits = len(f"{abs(value):.0f}")
    most = max(0, MOST_DECIMALS + 1 - whole_digits)
    _, _, decimals = f"{value:.{most}f}".partition(".")
    return len(decimals.rstrip("0"))


def denominator(metric: Mapping[str, Any]) -> str:
    """Describe what a mean was taken over: `30 of 42 (10 not applicable, 2 errors)`."""
    parts = [f"{metric['n_not_applicable']} not applicable"] if metric["n_not_applicable"] else []
    if metric["n_error"]:
        parts.append(f"{metric['n_error']} error{'s' if metric['n_error'] > 1 else ''}")
    missing = metric["n_expected"] - metric["n_scored"] - metric["n_not_applicable"] - metric["n_error"]
    if missing > 0:
        parts.append(f"{missing} not run")
    independent = metric.get("n_independent")
    if independent is not None and independent != metric["n_scored"]:
        parts.insert(0, f"{independent} independent")
    return f"{metric['n_scored']} of {metric['n_expected']}" + (f" ({', '.join(parts)})" if parts else "")


def case_count(metrics: Mapping[str, Any]) -> str:
    """Return the number of cases of a run: `42 cases (40 turns of 8 conversations)`."""
    cases = counted(metrics["total_tests"], "case")
    conversations = metrics.get("conversations")
    if conversations is None:
        return cases
    return f"{cases} ({counted(conversations['turns'], 'turn')} of {counted(conversations['count'], 'conversation')})"


def file_size(number: int) -> str:
    """Format bytes as `12.3 kB` or `1,234.5 MB`."""
    return f"{number / 1e6:,.1f} MB" if number >= 100_000 else f"{number / 1e3:,.1f} kB"


def duration(milliseconds: float) -> str:
    """Format milliseconds as `340 ms` or `12.3 s`."""
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"
