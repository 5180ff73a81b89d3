"""The machine of a run as its operating system tells it: CPUs, memory, GPUs."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

CPUS = Path("/proc/cpuinfo")
GPUS = Path("/proc/driver/nvidia/gpus")
"""A folder for each GPU, where NVIDIA's driver is loaded."""


def hardware() -> dict[str, Any]:
    """Number and model of CPUs, memory in MiB, model of the GPU; null where the system does not say."""
    memory = None
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return {
        "cpus": os.cpu_count(),
        "cpu_model": _labelled(CPUS, "model name", "Hardware", "Model") or platform.processor() or None,
        "machine": platform.machine(),
        "memory_mib": memory,
        "gpu_model": _gpu_model(GPUS),
        "system": platform.system(),
    }


def _gpu_model(gpus: Path) -> str | None:
    """The models of the GPUs as their driver tells them; no program is asked."""
    try:
        models = [_labelled(gpu / "information", "Model") for gpu in sorted(gpus.iterdir())]
    except OSError:
        return None
    return ", ".join(model for model in models if model) or None


def _labelled(path: Path, *labels: str) -> str | None:
    """The value of the first line `label : value` of a file that has one of these labels; what follows is not read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                label, _, value = line.partition(":")
                if label.strip() in labels and value.strip():
                    return value.strip()
    except OSError:
        return None
    return None
