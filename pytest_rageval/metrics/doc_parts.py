"""The parts of a metric's docstring: definition, details, when it is not applicable, source, and example."""

from __future__ import annotations

import re
from typing import NamedTuple

from pytest_rageval.metrics.registry import Metric


class DocParts(NamedTuple):
    """The parts of a metric's docstring. `rule`: to what it is not applicable."""

    definition: str
    details: str
    rule: str
    source: str
    example: str


def doc_parts(metric: Metric) -> DocParts:
    """Split a docstring: first paragraph, rest, 'Not applicable …', 'Source: …', and the lead to its example."""
    definition, _, rest = metric.doc.partition("\n\n")
    details, _, example = rest.partition("\n\n")
    if ">>>" in details:
        details = ""
        example = rest
    line = " ".join(details.split())
    line, _, source = line.partition(" Source: ")
    before, _, rule = line.partition("Not applicable ")
    before = _RANGE.sub("", before.strip())
    return DocParts(
        definition=" ".join(definition.split()),
        details=before[:1].upper() + before[1:],
        rule=rule.removesuffix("."),
        source=source.removesuffix("."),
        example=example,
    )


_RANGE = re.compile(r"\A(?:In (?:\[0, 1\]|0 to \d), )?(?:higher|lower) is better(?:$|[.;]\s*)", re.IGNORECASE)
"""The table shows the range and the direction."""
