"""Targets: the systems under test."""

from pytest_rageval.targets.target import Target
from pytest_rageval.targets.target_spec import check_target, target_from_object, target_from_spec

__all__ = ["Target", "check_target", "target_from_object", "target_from_spec"]
