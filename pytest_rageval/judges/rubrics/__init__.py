"""Rubrics: one TOML file each, with version, scale, prompt and the schema of the reply."""

from __future__ import annotations

from pytest_rageval.judges.rubrics.rubric_lookup import check_rubrics, load_rubric, rubric_names, rubric_of
from pytest_rageval.model import Rubric

__all__ = ["Rubric", "check_rubrics", "load_rubric", "rubric_names", "rubric_of"]
