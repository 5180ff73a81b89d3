"""Results of judge checks, kept beside the judge cache by the judge's identity, and what of one concerns a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_rageval.io.atomic import write_json
from pytest_rageval.judges.canaries.canary import Verdict
from pytest_rageval.judges.canaries.trying import rubrics_of
from pytest_rageval.judges.judge import Judge, can_judge, identity_of
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.model import Rubric

CheckRecord = Mapping[str, Any]
"""`checked` (UTC), `repeats`, and `rubrics`: by name `prompt_version`, number of `canaries` and those that `failed`."""


def keep_check(
    path: Path, judge: Judge, verdicts: Sequence[Verdict], wordings: Mapping[str, Rubric], repeats: int
) -> None:
    """Add a judge's result to the file, in place of its last one; an OSError where that cannot be written."""
    rubrics = {
        name: {
            "prompt_version": (wordings.get(name) or load_rubric(name)).prompt_version,
            "canaries": len(group),
            "failed": [verdict.canary for verdict in group if not verdict.passed],
        }
        for name, group in rubrics_of(verdicts).items()
    }
    record = {"checked": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "repeats": repeats, "rubrics": rubrics}
    write_json(path, {**_read(path), identity_of(judge): record})


def kept_check(path: Path, judge: Judge) -> CheckRecord | None:
    """The last result of this judge; None where it was never checked here."""
    record = _read(path).get(identity_of(judge))
    return record if isinstance(record, dict) and isinstance(record.get("rubrics"), dict) else None


def check_of_run(record: CheckRecord | None, judge: Judge, wordings: Mapping[str, Rubric]) -> dict[str, Any] | None:
    """As much of a result as concerns the rubrics of a run, in the wording it asks them in; None without any result.

    `unchecked` names those that the judge was not tried on as they are worded now.
    """
    if record is None:
        return None
    asked = {name: rubric.prompt_version for name, rubric in sorted(wordings.items()) if can_judge(judge, name)}
    tried = {
        name: result
        for name, result in record["rubrics"].items()
        if isinstance(result, dict) and asked.get(name) == result.get("prompt_version")
    }
    return {**record, "rubrics": tried, "unchecked": [name for name in asked if name not in tried]}


def _read(path: Path) -> dict[str, Any]:
    """The file's content; nothing where there is none or it is no longer JSON, since it can be made again."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
