"""The checks of `rageval doctor` on a run's surroundings: reports, disk, ontology, extras."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from pytest_rageval.compare.baseline import project_baseline
from pytest_rageval.config.project import Project
from pytest_rageval.metrics.ontology import load_validator
from pytest_rageval.runs.disk.folder import check_reports
from pytest_rageval.text import counted
from pytest_rageval.workbench.doctor.diagnosis import Diagnosis

LITTLE, TOO_LITTLE = 2**30, 64 * 2**20
"""Free bytes below which a doubt, or a problem, is said."""
EXTRAS = {
    "web": ("fastapi", "uvicorn", "python_multipart"), "cli": ("textual",), "ontology": ("rdflib", "pyshacl"),
    "prices": ("genai_prices",), "nli": ("onnxruntime", "tokenizers"),
    "any-llm": ("any_llm",), "deepeval": ("deepeval",), "parquet": ("pyarrow",), "ray": ("ray",),
}  # fmt: skip
"""Optional parts of the installation, by the modules that each needs."""


def look_at_reports(project: Project) -> Iterator[Diagnosis]:
    """The folder of runs: can it be written, is there room?"""
    check_reports(project.reports)
    runs = sum(1 for _ in project.reports.glob("runs/*/config.json"))
    baseline = "no baseline yet" if project_baseline(project) is None else "with a baseline"
    yield Diagnosis("ok", f"{project.settings.reports}/ can be written: {counted(runs, 'run')}, {baseline}")
    free = shutil.disk_usage(_nearest_existing(project.reports)).free
    shown = f"{free / 2**30:.1f} GiB free"
    if free < LITTLE:
        yield Diagnosis(
            "problem" if free < TOO_LITTLE else "warning", shown, "make room; rageval runs prune removes runs"
        )
    else:
        yield Diagnosis("ok", shown)


def look_at_ontology(project: Project) -> Iterator[Diagnosis]:
    """The files that the graph's claims are checked against."""
    places = project.settings.ontology
    if places is None:
        yield Diagnosis("ok", "none: claims of a knowledge graph are checked against none")
        return
    validator = load_validator(places, project.root)
    yield Diagnosis("ok", f"{', '.join(places)}, sha256 {validator.digest[:12]}")


def look_at_extras(_: Project) -> Iterator[Diagnosis]:
    """Optional parts of the installation."""
    installed = [name for name, modules in EXTRAS.items() if all(find_spec(module) for module in modules)]
    missing = [name for name in EXTRAS if name not in installed]
    fix = f"pip install 'pytest-rageval[{missing[0]}]', for one that you need" if missing else ""
    yield Diagnosis("ok", f"installed: {', '.join(installed) or 'none'}; not: {', '.join(missing) or 'none'}", fix)


def _nearest_existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())
