"""The structure of the package: who imports whom, no cycles, no private parts of other packages, readable files."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parent.parent / "pytest_rageval"
FLOORS = (
    ("errors", "text", "links", "providers"),
    ("model",),
    ("language",),
    ("io",),
    ("config",),
    ("http",),
    ("llm",),
    ("matching", "abstention"),
    ("assertions",),
    ("cases",),
    ("targets", "judges", "metrics"),
    ("gates", "stats"),
    ("run.ask",),
    ("run.turn_measures",),
    ("run.judged_rubrics",),
    ("run.plan",),
    ("run.scoring",),
    ("run.engine",),
    ("run.rewrites",),
    ("run.conversations",),
    ("run.prefetch",),
    ("runs",),
    ("comparison",),
    ("run.extent",),
    ("run.finish_notes",),
    ("run.end_checks",),
    ("run.acceptance",),
    ("run.finish",),
    ("run.prepare",),
    ("run.case_records",),
    ("run.attempts",),
    ("run.case_blocks",),
    ("run.ongoing_run",),
    ("rescore", "export"),
    ("scale",),
    ("check",),
    ("tune", "make"),
    ("views",),
    ("render",),
    ("label",),
    ("web",),
    ("plugin", "cli", "api"),
    ("__main__",),
)
"""From the ground up: a part imports from its own folder and from lower floors, never from its own floor.

The modules of the pipeline have floors of their own: records know what a case came to, and the end of a run knows
records.
"""
FLOOR = {part: number for number, floor in enumerate(FLOORS) for part in floor}
LIGHT = (
    "__init__",
    "errors",
    "text",
    "providers",
    "config/__init__",
    "config/files",
    "config/options",
    "cases/discovery",
    "io/__init__",
    "io/collector",
    "plugin/__init__",
    "plugin/fixtures",
    "plugin/hooks",
    "plugin/hookspecs",
    "plugin/entry",
    "plugin/light_session",
)
"""Modules that a suite without cases may load: they need the standard library and pytest, and each other."""
HOMES = {"httpx": "http", "pytest": "plugin", "ray": "scale"}
"""Libraries that one room knows."""
MOST_LINES = 400
"""Lines of a file: a longer one holds two subjects."""
PRIVATE = re.compile(
    r"\b(?:from|import) _pytest|\b(?:httpcore|httpx|pytest|xdist|pydantic|uvicorn)\._[a-z]|sys\.meta_path"
    r"|__pydantic_core_schema__|core_schema|setswitchinterval|_thread\.start_new|_update_current_test_var"
    r"|import LoadScheduling|H11Protocol|sys\.modules\[__name__\]\.__class__"
)
"""Private parts of other packages, and changes of the interpreter that others would notice."""
ENTRY_POINTS = frozenset({"__getattr__", "__dir__", "from_spec"})


class Import(NamedTuple):
    module: str
    line: int
    is_at_top: bool


class Module(NamedTuple):
    name: str
    path: Path
    lines: int
    imports: tuple[Import, ...]
    """All of them, those inside functions and for types too."""
    public: tuple[str, ...]

    @property
    def part(self) -> str:
        steps = self.name.split(".")[1:]
        if not steps:
            return "__init__"
        is_stage = steps[0] == "run" and len(steps) > 1
        return ".".join(steps) if is_stage else steps[0]


@cache
def modules() -> dict[str, Module]:
    """Every module of the package, parsed once."""
    return {module.name: module for module in map(parsed, sorted(PACKAGE.rglob("*.py")))}


def parsed(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    name = ".".join([PACKAGE.name, *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    public = (node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_"))
    return Module(name, path, text.count("\n"), tuple(imports(tree)), tuple(n for n in public if n not in ENTRY_POINTS))


def imports(tree: ast.Module) -> Iterator[Import]:
    at_top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, id(node) in at_top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield Import(f"{node.module}.{alias.name}", node.lineno, id(node) in at_top)


def own(module: str) -> str | None:
    """The module of this package that an import means: `pytest_rageval.cases.load_file` → `pytest_rageval.cases`."""
    while module and module not in modules():
        module = module.rpartition(".")[0]
    return module or None


def part_of(module: str) -> str:
    return modules()[module].part


def test_imports_go_downwards():
    wrong = []
    for module in modules().values():
        if module.part == "__init__":
            continue
        for imported, line, _ in module.imports:
            there = part_of(name) if (name := own(imported)) else module.part
            if there in ("__init__", module.part):
                continue
            if module.part == "demo":
                is_right = FLOOR[there] < FLOOR["metrics"]
            elif there == "demo":
                is_right = module.part in ("targets", "cli")
            else:
                is_right = FLOOR[there] < FLOOR[module.part]
            if not is_right:
                wrong.append(f"{module.path.relative_to(PACKAGE)}:{line}: {module.part} may not import {there}")
    assert not wrong, "\n".join(wrong)


def test_libraries_have_one_home_and_every_suite_loads_only_the_standard_library():
    wrong = []
    light = {PACKAGE / f"{name}.py" for name in LIGHT}
    for module in modules().values():
        for imported, line, is_at_top in module.imports:
            top = imported.split(".")[0]
            place = f"{module.path.relative_to(PACKAGE)}:{line}: {imported}"
            if HOMES.get(top, module.part) != module.part:
                wrong.append(f"{place} belongs to {HOMES[top]}")
            is_known = top in sys.stdlib_module_names or top in (PACKAGE.name, "pytest")
            if module.path in light and is_at_top and not is_known:
                wrong.append(f"{place} is not for a module that every suite loads")
    assert not wrong, "\n".join(wrong)


def test_there_are_no_cycles_between_modules():
    """Not through imports inside functions or for types either."""
    graph = {
        module.name: {name for imported in module.imports if (name := own(imported.module))} - {module.name}
        for module in modules().values()
        if module.path.name != "__init__.py"
    }
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " → ".join([*above[above.index(module) :], module])
        if module in done:
            return
        for next_module in graph.get(module, ()):
            visit(next_module, (*above, module))
        done.add(module)

    for module in graph:
        visit(module, ())


def test_files_have_a_size_to_be_read():
    long = [f"{m.path.relative_to(PACKAGE)}: {m.lines} lines" for m in modules().values() if m.lines > MOST_LINES]
    assert not long, "\n".join(long)


def test_private_parts_of_other_packages_are_left_alone():
    found = []
    for module in modules().values():
        for number, line in enumerate(module.path.read_text(encoding="utf-8").splitlines(), start=1):
            if PRIVATE.search(line) and not line.lstrip().startswith("#"):
                found.append(f"{module.path.relative_to(PACKAGE)}:{number}: {line.strip()}")
    assert not found, "\n".join(found)


def test_no_class_forwards_what_it_does_not_define():
    forwarding = []
    for module in modules().values():
        for node in ast.walk(ast.parse(module.path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
                if "__getattr__" in methods:
                    forwarding.append(f"{module.name}.{node.name}")
    assert forwarding == []


def test_a_public_name_is_defined_once():
    """The verbs of the command aside: a verb is called like what it does."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules().values():
        if module.part != "cli":
            for name in module.public:
                places[name].append(module.name)
    twice = [f"{name}: {', '.join(where)}" for name, where in sorted(places.items()) if len(where) > 1]
    assert not twice, "\n".join(twice)
