"""The style of the app beside that of reports: no rule of one changes what the other lays out."""

from __future__ import annotations

import re

from pytest_rageval.render.html.environment import asset
from pytest_rageval.web.rendering import asset_files

EXTENDED = {".case-bar", ".chips"}
"""Classes whose look the app extends on purpose."""


def classes_alone(style: str) -> set[str]:
    """Return the classes that a rule is for without any other selector."""
    return set(re.findall(r"(?:^|[},])\s*(\.[a-z-]+)\s*(?=[{,])", style, re.MULTILINE))


def test_no_style_of_the_app_lays_out_the_parts_of_a_report_otherwise():
    """Pairs of inputs in a form were laid out by `.pair`, as were question and answer of a case."""
    of_reports = classes_alone(asset("tokens.css"))
    styles = [file for name, file in asset_files().items() if name.endswith(".css") and name != "tokens.css"]
    assert styles
    for file in styles:
        assert classes_alone(file.content.decode()) & of_reports <= EXTENDED, file.address
