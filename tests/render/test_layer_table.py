"""Layers by category: the same figures in the terminal, in summary.md, in the comparison and on the page."""

from __future__ import annotations

import re
from html import unescape

from project import Project, a_case, a_missed_case

CELL = re.compile(r"<b>([^<]*)</b>(?: <span class=\"delta\">[▼▲] ([^<]*)</span>)?|<td class=\"heat none\">(–)")


def test_every_face_shows_the_same_score_and_the_same_change(project: Project):
    cases = [a_case(f"c{number}", category=("factual", "multi_hop")[number % 2]) for number in range(8)]
    unlabelled = {"id": "bare", "question": "What is the boiling point?", "category": "factual"}
    project.cases([*cases, unlabelled])
    project.run("--rageval-update-baseline")
    spoilt = [a_missed_case("c0", category="factual"), *cases[1:], unlabelled]
    project.cases(spoilt)
    result = project.run("--rageval-ignore-invariants")
    scores, changes = on_page((project.runs[-1] / "report.html").read_text(encoding="utf-8"))
    assert set(scores) == {"factual", "multi_hop"}
    assert scores == {name: row[2:] for name, row in in_terminal(result.outlines).items()}
    assert scores == {name: row[6:] for name, row in in_markdown(project).items()}
    compared = project.rageval("compare", "baseline", "latest", "--ignore-invariants").outlines
    moved = {line.split()[0]: line.split()[-len(changes["factual"]) :] for line in compared if line.split()[:1]}
    assert changes == {name: ["" if text in "=–" else text for text in moved[name]] for name in changes}
    assert any(changes["factual"])


def on_page(html: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """By category, the scores of its layers and their changes."""
    table = html.partition('<table class="heat">')[2].partition("</table>")[0]
    scores, changes = {}, {}
    for row in table.split("<tr>")[2:]:
        name = unescape(re.sub(r"<[^>]+>", "", row.partition("</th>")[0])).strip()
        cells = CELL.findall(row)
        scores[name] = [value or none for value, _, none in cells]
        changes[name] = [moved for _, moved, _ in cells]
    return scores, changes


def in_terminal(lines: list[str]) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in lines if line.startswith(("factual ", "multi_hop "))}


def in_markdown(project: Project) -> dict[str, list[str]]:
    text = (project.runs[-1] / "summary.md").read_text(encoding="utf-8").replace("\\_", "_")
    part = text.partition("## By category")[2].partition("## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in rows[2:]}
