"""Time and memory, measured here and now: `python benchmarks/run.py [--quick | --full] [--write | --print] [NAME…]`.

Nothing is asserted. Runs us and the peers against the same server on loopback, in turns, and prints what came out.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from importlib.metadata import version
from pathlib import Path

import environments
from harness import Row, Scale, measure
from table import markdown, terminal

NAMES = (
    "machine_speed",
    "server_ceiling",
    "start_up",
    "in_flight",
    "cpu_per_case",
    "workers",
    "recorded_cases",
    "items",
    "many_cases",
    "local_workers",
    "million_cases",
    "report_page",
    "cases_loading",
    "retrieval_metrics",
    "replay",
)
LONG = ("web_index",)
"""With --full, or by name."""
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
AT_ONCE_S = 0.5
"""Rows that come this soon after the one before were measured with it."""


def main(arguments: list[str]) -> int:
    """Measure what was named, or everything; the exit status is 1 if something could not be measured."""
    parser = _parser()
    options = parser.parse_args(arguments)
    names = options.names or (NAMES + LONG if options.full else NAMES)
    if unknown := [name for name in names if name not in NAMES + LONG]:
        parser.error(f"unknown benchmark {', '.join(unknown)}; there are {', '.join(NAMES + LONG)}")
    started = time.monotonic()
    scale = _scale(options)
    _compile()
    measured: list[Row] = []
    text = ""
    has_failed = False
    for name in names:
        print(f"… {name} ({time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)
        try:
            rows = list(_with_loads(importlib.import_module(name).rows(scale)))
        except RuntimeError as error:  # the others are worth measuring all the same
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            has_failed = True
            continue
        print(f"\n{terminal(rows)}\n", flush=True)
        measured += rows
        minutes = (time.monotonic() - started) / 60
        text = f"{_header(scale, minutes)}\n\n{markdown(measured)}"
        if options.markdown:  # after each, so that an end in the middle loses little
            options.markdown.write_text(text, encoding="utf-8")
        if options.write:
            _write(text)
    if options.print:
        print(text)
    return 1 if has_failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Time and memory, measured here and now.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES + LONG)}")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="no peers, a tenth of the cases, a third of the rounds")
    size.add_argument(
        "--full", action="store_true", help="also what takes long: 100,000 items, larger pages, the web's index"
    )
    parser.add_argument("--rounds", type=int, metavar="MOST", help="no more rounds than this of anything")
    parser.add_argument("--no-peers", action="store_true", help="us, and what is written by hand")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there as well")
    parser.add_argument("--peers", metavar="NAMES", help="of the other tools only these, with commas between")
    parser.add_argument("--print", action="store_true", help="print the table in Markdown at the end")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}, between its marks")
    return parser


def _scale(options: argparse.Namespace) -> Scale:
    peers: list[environments.Peer] = []
    missing: dict[str, str] = {}
    names = tuple(environments.NAMES) if options.peers is None else tuple(options.peers.split(","))
    for name in () if options.quick or options.no_peers else names:
        try:
            peers.append(environments.installed(name))
        except environments.CannotBeInstalled as reason:
            missing[name] = f"cannot be installed: {reason}"
    return Scale(options.quick, options.full, options.rounds, peers, missing)


def _compile() -> None:
    """Everything of ours is compiled before the first measurement, modules and templates."""
    root = PAGE.parent.parent
    code = (
        "from pytest_rageval.render.html.environment import environment\n"
        "for name in environment().list_templates(extensions=['html']): environment().get_template(name)"
    )
    measure([sys.executable, "-m", "compileall", "-q", "pytest_rageval"], root)
    measure([sys.executable, "-c", code], root)


def _with_loads(rows: Iterable[Row]) -> Iterator[Row]:
    """Each row with the load before and after it was measured."""
    before, began = os.getloadavg()[0], time.monotonic()
    loads = before, before
    for row in rows:
        if time.monotonic() - began > AT_ONCE_S:
            after = os.getloadavg()[0]
            loads, before = (before, after), after
        yield replace(row, loads=loads)
        began = time.monotonic()


def _header(scale: Scale, minutes: float) -> str:
    """Date, machine and versions."""
    packages = ("pytest", "httpx", "pydantic", "pytest-xdist")
    versions = [f"{name} {version(name)}" for name in packages] + [
        f"{peer.name} {peer.version}" for peer in scale.peers
    ]
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=PAGE.parent, capture_output=True, text=True,
                          check=False)  # fmt: skip
    amount = "a quick look: " if scale.is_quick or scale.most_rounds else ""
    return (
        f"{date.today():%d %B %Y}, {amount}{minutes:.0f} minutes; {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, {', '.join(versions)}; pytest-rageval at {done.stdout.strip() or 'no commit'}."
    )


def _write(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"{PAGE}: the marks {BEGIN} and {END} are not there; put them where the table should stand")
    PAGE.write_text(f"{before}{BEGIN}\n{text}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
