"""L4: what a system inferred, checked against an ontology of TOML or JSON, or of RDF with SHACL shapes."""

from __future__ import annotations

from pytest_rageval.metrics.ontology.claims import Claims, Fact, Validator, Value, Violations, claims_of, fact_of
from pytest_rageval.metrics.ontology.rates import (
    CHECKED,
    constraint_violation_rate,
    load_validator,
    type_consistency_rate,
)

__all__ = [
    "CHECKED",
    "Claims",
    "Fact",
    "Validator",
    "Value",
    "Violations",
    "claims_of",
    "constraint_violation_rate",
    "fact_of",
    "load_validator",
    "type_consistency_rate",
]
