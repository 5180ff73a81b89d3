"""The judge cache of a project: whether judgements may be kept there, whoever judges."""

from __future__ import annotations

from pathlib import Path

from pytest_rageval.config.settings import Settings
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache


def project_cache(settings: Settings, file: Path) -> SqliteCache | None:
    """The cache in this file, which its owner closes; None where nothing may be kept.

    That is with `judge_cache = "off"`, and with `redact`: a judgement quotes what it judged. `settings` are the
    project's, not those of a stored run, which may have been written without `redact`.
    """
    if settings.judge_cache == "off" or settings.redact:
        return None
    return SqliteCache(file)
