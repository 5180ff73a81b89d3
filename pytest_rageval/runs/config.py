"""The content of config.json: the configuration of a run, and a hash over all that can change results."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pytest_rageval.cases.canonical import content_hash
from pytest_rageval.config.settings import Settings
from pytest_rageval.gates.gate import conditions_text
from pytest_rageval.io.masking import public_params, public_target
from pytest_rageval.metrics.index_coverage import reported_versions
from pytest_rageval.model import EvalCase
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.stored_plan import described_metrics, meanings

LIBRARIES = ("pytest-rageval", "pytest", "pytest-xdist", "pytest-html", "httpx", "httpcore", "pydantic")
CPUS = Path("/proc/cpuinfo")
GPUS = Path("/proc/driver/nvidia/gpus")
"""The folder of NVIDIA's driver with one folder for each GPU."""
SERVER_DEFAULT = "server default"
"""What config.json has in place of a value that is not sent."""


def run_config(
    plan: Plan,
    cases: Iterable[EvalCase],
    files: Iterable[Path],
    root: Path,
    target: str,
    judge: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the content of config.json, fixed before the first case. `target` and `judge` are those really used."""
    settings = plan.settings
    asked_for = _asked_for(plan, target, judge)
    assert asked_for.keys() == set(ASKED_FOR)
    cases = list(cases)
    dataset = dataset_hash_of((case.key, content_hash(case)) for case in cases)
    retriever = [settings.k, settings.folder_mode, asked_for["rerank_weights"], dict(sorted(settings.params.items()))]
    # Names only: a value may be a credential.
    headers = {
        "target": sorted(name.lower() for name in settings.headers),
        "judge": sorted(name.lower() for name in settings.judge_options.headers),
    }
    libraries = {name: _version(name) for name in LIBRARIES}
    libraries["python"] = platform.python_version()
    content = {
        "schema": 1,
        **asked_for,
        "settings": _written_settings(settings, target),
        "headers": headers,
        "own_meanings": meanings(plan),
        "dataset_version": dataset_version(dataset, files, root),
        "index_build_version": None,
        "retriever_version": _hash(retriever),
        "answerer_version": None,
        "dataset_hash": dataset,
        "expected": planned(cases, settings.repeat),
        "shard": settings.shard,
        "observed": {},
        "project": project_version(root),
        "hardware": hardware(),
        "libraries": libraries,
    }
    if settings.origin is not None:
        content["origin"] = settings.origin.model_dump()
    content |= observed(settings.versions.model_dump(), {}, None, None)
    content |= flat_names(content)
    content["config_hash"] = config_hash_of(content)
    return content


def flat_names(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return models, prompts and temperature by the flat names that other tools read; null if unknown or not judged.

    `judge_prompt_version` names all prompts, each with its version.
    """
    judge = config["judge"] or {}
    versions = config["observed"]
    prompts = None
    if judge and config["rubrics"]:
        prompts = ", ".join(f"{name} {version}" for name, version in config["rubrics"].items())
    return {
        "llm_model": versions.get("llm"),
        "embedding_model": versions.get("embedding"),
        "judge_model": judge.get("model"),
        "judge_prompt_version": prompts,
        "judge_temperature": judge.get("temperature"),
    }


def _asked_for(plan: Plan, target: str, judge: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the run really requests of the system, the judge and the metrics, by the names of `ASKED_FOR`."""
    settings = plan.settings
    prompt_versions = {name: wording.prompt_version for name, wording in sorted(plan.wordings.items())}
    rerank_weights = {
        "vector": _or_server_default(settings.rerank_vector_weight),
        "lexical": _or_server_default(settings.rerank_lexical_weight),
    }
    gates = {
        "case": [_gate(gate) for gate in plan.case_gates],
        "run": [_gate(gate) for gate in plan.run_gates],
        "regression": [str(gate) for gate in plan.regressions],
    }
    return {
        "k": settings.k,
        "asked_k": plan.asked_k,
        "folder_mode": settings.folder_mode or SERVER_DEFAULT,
        "rerank_weights": rerank_weights,
        "params": public_params(settings.params),
        "target": public_target(target),
        "judge": judge,
        "rubrics": prompt_versions,
        "ontology": plan.ontology,
        "metrics": [measure.name for measure in (*plan.measures, *plan.run_measures)],
        "own_metrics": described_metrics(plan),
        "gates": gates,
    }


def _or_server_default(weight: float | None) -> float | str:
    return SERVER_DEFAULT if weight is None else weight  # 0 is a weight


def _written_settings(settings: Settings, target: str) -> dict[str, Any]:
    """Return the settings that can change results, without credentials."""
    written = settings.deciding()
    # The target may be a fixture, which no setting names.
    written["target"] = written["target"] or target
    for name in ("target", "judge", "judge_base_url"):
        written[name] = written[name] and public_target(written[name])
    written["params"] = public_params(written["params"])
    if written["mapping"] is not None:
        written["mapping"]["request"] = public_params(written["mapping"]["request"])
    return written


ASKED_FOR = (
    "k", "asked_k", "folder_mode", "rerank_weights", "params", "target", "judge", "rubrics", "ontology", "metrics",
    "own_metrics", "gates",
)  # fmt: skip
"""The keys of config.json in its hash, besides the settings and the cases."""


def config_hash_of(config: Mapping[str, Any]) -> str:
    """Return the hash of the content of a config.json."""
    return _hash([config["settings"], {name: config[name] for name in ASKED_FOR}, config["dataset_hash"]])


def hashed_part(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a config.json that its hash covers."""
    return {name: config[name] for name in ("settings", *ASKED_FOR, "dataset_hash") if name in config}


def reported(versions: Mapping[str, Any] | None, coverage: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the versions that the system reported, with its answers or with its index coverage."""
    return {**reported_versions(coverage), **(versions or {})}


def stated_otherwise(stated: Mapping[str, Any], by_system: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each version that the project states differently from the system."""
    for name, version in stated.items():
        other = by_system.get(name)
        if version is not None and other is not None and other != version:
            yield f"versions.{name} is stated as {version!r}, the system reports {other!r}, which counts"


def observed(
    stated: Mapping[str, Any],
    by_system: Mapping[str, Any],
    coverage: Mapping[str, Any] | None,
    served_judge: str | None,
) -> dict[str, Any]:
    """Return `observed`, the versions that the system reports or the project states, and the two hashes over them.

    `served_judge`: the model name that the judge's server reports; it affects no key and no hash.
    """
    served = {} if served_judge is None else {"judge": served_judge}
    known = {name: version for name, version in stated.items() if version is not None}
    additional = {name: version for name, version in known.items() if by_system.get(name) is None}
    versions = {**by_system, **additional}
    if not versions:
        return {"observed": served}
    index = {name: versions[name] for name in ("chunker", "embedding", "index") if name in versions}
    answerer = {name: versions[name] for name in ("llm", "prompt") if name in versions}
    return {
        "index_build_version": _hash([index, (coverage or {}).get("index_version")]) if index else None,
        "answerer_version": _hash(answerer) if answerer else None,
        "observed": {**versions, **served},
    }


def planned(cases: Iterable[EvalCase], trials: int) -> dict[str, Any]:
    """Return number and identity of the cases that there are to ask, and how often each is asked."""
    keys = sorted(case.key for case in cases)
    return {"cases": len(keys), "trials": trials, "keys": _hash(keys)}


def dataset_hash_of(contents: Iterable[tuple[str, str]]) -> str:
    """Return the SHA-256 of the canonical JSON of all (key, content hash) pairs, in any order."""
    return _hash(sorted(contents))


def dataset_version(dataset: str, files: Iterable[Path], root: Path) -> str:
    """Return the git commit that last touched the case files if they are clean, else the hash of their content."""
    paths = [os.path.relpath(path, root) for path in files]
    if paths:
        is_clean = _git(root, "status", "--porcelain", "--", *paths) == ""
        # An ignored file is clean, too, without being in any commit.
        is_tracked = is_clean and _git(root, "ls-files", "--error-unmatch", "--", *paths) is not None
        commit = _git(root, "log", "-1", "--format=%H", "--", *paths) if is_tracked else None
        if commit:
            return commit
    return f"content:{dataset}"


def project_version(root: Path) -> dict[str, Any] | None:
    """Return the commit and the branch of the tested project, and whether tracked files have changed.

    None without git or a repository; the commit is None before the first one, the branch if none is checked out.
    """
    status = _git(root, "status", "--porcelain=v2", "--branch", "--untracked-files=no")
    if status is None:
        return None
    heads: dict[str, str | None] = {}
    is_changed = False
    for line in status.splitlines():
        if line.startswith("# "):
            name, value = line.removeprefix("# branch.").split(" ", 1)
            # git writes `(initial)` for a missing commit, and `(detached)` for a missing branch.
            heads[name] = None if value.startswith("(") else value
        else:
            is_changed = True
    return {"commit": heads["oid"], "branch": heads["head"], "is_changed": is_changed}


def _git(root: Path, *arguments: str) -> str | None:
    """Return the output of git; None without git or a repository, or if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 because the arguments are ours and no shell reads them
            ["git", "--no-optional-locks", "-C", str(root), *arguments],  # noqa: S607 because git is where the user's PATH has it
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            # A git on a slow network drive must not hold the run.
            timeout=10,
            check=False,
            # git may ask for a password, and nobody would answer.
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _gate(gate: Any) -> str:
    text = str(gate)
    if gate.when:
        text += f" when {gate.condition}"
    for conditions in gate.unless:
        text += f" unless {conditions_text(conditions)}"
    if gate.tag:
        text += f" tag {gate.tag}"
    return text


@cache  # 2 ms each: the metadata of a package is parsed as an e-mail
def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _hash(value: Any) -> str:
    """Return the SHA-256 of the canonical JSON."""
    # Sorted and in ASCII: equal values have one form, and lone surrogates can be encoded.
    text = json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def hardware() -> dict[str, Any]:
    """Return number and model of CPUs, memory in MiB and GPU models; null if the system does not report them."""
    memory = None
    gpus: list[str | None] = []
    with suppress(OSError):  # the driver's files tell, without starting a program
        gpus = [_labelled(gpu / "information", "Model") for gpu in sorted(GPUS.iterdir())]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return {
        "cpus": os.cpu_count(),
        "cpu_model": _labelled(CPUS, "model name", "Hardware", "Model") or platform.processor() or None,
        "machine": platform.machine(),
        "memory_mib": memory,
        "gpu_model": ", ".join(filter(None, gpus)) or None,
        "system": platform.system(),
    }


def _labelled(path: Path, *labels: str) -> str | None:
    """Return the value of the first `label : value` line with one of these labels; read no further."""
    with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            label, _, value = line.partition(":")
            if label.strip() in labels and value.strip():
                return value.strip()
    return None
