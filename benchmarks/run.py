"""Time and memory, measured here and now: `python benchmarks/run.py [--quick] [NAME…]`.

Nothing is asserted. Runs us and the peers against the same server on loopback, in turns, and prints what came out.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from harness import Row, Scale
from table import markdown, terminal

NAMES = (
    "machine_speed",
    "server_ceiling",
    "start_up",
    "in_flight",
    "workers",
    "cpu_per_case",
    "items",
    "many_cases",
    "cases_loading",
    "retrieval_metrics",
    "replay",
    "report_page",
    "web_index",
)


def main(arguments: list[str]) -> int:
    """Measure what was named, or everything; the exit status is 1 if something could not be measured."""
    parser = _parser()
    told = parser.parse_args(arguments)
    if unknown := [name for name in told.names if name not in NAMES]:
        parser.error(f"unknown benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    scale = Scale(is_quick=told.quick, peers_python=told.peers)
    found: list[Row] = []
    has_failed = False
    for name in told.names or NAMES:
        print(f"… {name}", file=sys.stderr, flush=True)
        try:
            rows = list(importlib.import_module(name).rows(scale))
        except (
            RuntimeError
        ) as error:  # a run that did not end as it should; the others are worth measuring all the same
            print(f"{name}: {error}", file=sys.stderr, flush=True)
            has_failed = True
            continue
        print(f"\n{terminal(rows)}\n", flush=True)
        found += rows
        if told.markdown:  # after each, so that an end in the middle loses little
            told.markdown.write_text(markdown(found), encoding="utf-8")
    return 1 if has_failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Time and memory, measured here and now.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="a tenth of the cases and a third of the rounds")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there as well")
    parser.add_argument(
        "--peers", metavar="PYTHON", help="interpreter of an environment with httpx and pydantic-evals: adds that peer"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
