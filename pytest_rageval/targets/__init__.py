"""Targets: the systems under test."""

from pytest_rageval.targets.base import Target
from pytest_rageval.targets.choice import check_spec, target_from_object, target_from_spec

__all__ = ["Target", "check_spec", "target_from_object", "target_from_spec"]
