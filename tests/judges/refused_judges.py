"""What is said of a judge that cannot be made."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_rageval.errors import SettingsError
from pytest_rageval.judges import judge_from_spec


def problem_of(spec: str, **how: Any) -> str:
    """The one problem of a judge that is refused, on its one line."""
    with pytest.raises(SettingsError) as caught:
        judge_from_spec(spec, **how)
    (problem,) = caught.value.problems
    assert "\n" not in problem
    return problem
