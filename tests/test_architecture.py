"""Who may import whom: downwards only, no cycles, heavy things where they are used."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "pytest_rageval"
FLOORS = (
    ("model", "errors", "options"),
    ("text", "table", "masking"),
    ("matching", "settings", "retries"),
    ("http", "passages"),
    ("cases", "targets", "judges", "metrics"),
    ("gates",),
    ("plan",),
    ("engine",),
    ("ahead", "runs"),
    ("report", "workbench"),
    ("plugin", "cli", "web"),
)
"""From the ground up: a part imports from its own folder and from lower floors, never from its own floor."""
LIGHT = {"__init__", "model", "errors", "options", "table", "text", "matching"}
"""Parts that a suite without cases may load: standard library only."""
DEMO_LLM_NEEDS = ("text", "model", "errors")
"""Light parts that the one module of the demo which knows the judges' client needs beside it."""
ONLY_IN = {"httpx": {"http"}, "pytest": {"plugin"}}


def imports(path: Path) -> Iterator[tuple[str, int, bool]]:
    """Modules that a file imports (not for types only), the line, and whether at the top of the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_top = {id(node) for node in tree.body}
    for_types = {
        id(node)
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno, id(node) in at_top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno, id(node) in at_top


def part_of(module: str) -> str:
    """`pytest_rageval.cases.jsonl` → `cases`."""
    steps = module.split(".")
    return steps[1] if len(steps) > 1 else "__init__"


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> str:
    return ".".join([PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts])


FLOOR = {part: number for number, floor in enumerate(FLOORS) for part in floor}


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downwards(path: Path):
    here = part_of(module_of(path))
    for module, line, is_at_top in imports(path):
        if not module.startswith(PACKAGE.name) or here == "__init__":
            continue
        there = part_of(module)
        if there in ("__init__", here):
            continue
        if here == "demo" and path.name == "llm.py":
            # `rageval demo serve --llm` asks by the judges' client: one client of language models in the package is
            # enough. It is loaded only then, so the demo without a model still stands alone.
            is_late = there == "judges" and not is_at_top
            assert is_late or there in DEMO_LLM_NEEDS, f"{path.name}:{line}: judges only where a model is made or asked"
        elif here == "demo":
            assert there == "text", f"{path.name}:{line}: the demo stands alone"
        elif there == "demo":
            assert here in ("targets", "cli"), f"{path.name}:{line}: only its target and its command know the demo"
        else:
            assert FLOOR[there] < FLOOR[here], f"{path.name}:{line}: {here} may not import {there}"


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_some_libraries_have_one_home(path: Path):
    here = part_of(module_of(path))
    for module, line, _ in imports(path):
        homes = ONLY_IN.get(module.split(".")[0])
        assert homes is None or here in homes, f"{path.name}:{line}: {module} belongs to {homes}"


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_every_suite_loads_needs_only_the_standard_library(path: Path):
    if part_of(module_of(path)) not in LIGHT:
        return
    for module, line, is_at_top in imports(path):
        top = module.split(".")[0]
        assert not is_at_top or top in sys.stdlib_module_names or top == PACKAGE.name, f"{path.name}:{line}: {module}"


def test_every_part_has_a_floor():
    parts = {part_of(module_of(path)) for path in files()} - {"__init__", "demo", "py"}
    assert parts <= set(FLOOR), f"where do these belong: {parts - set(FLOOR)}?"


def test_there_are_no_cycles_between_modules():
    graph = {
        module_of(path): {
            module for module, _, is_at_top in imports(path) if is_at_top and module.startswith(PACKAGE.name)
        }
        for path in files()
        if path.name != "__init__.py"
    }
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " → ".join([*above, module])
        if module in done:
            return
        for next_module in graph.get(module, ()):
            visit(next_module, (*above, module))
        done.add(module)

    for module in graph:
        visit(module, ())
