"""One thing is never said in the plural: by no face, of a run of one case with one gold, one chunk and one failure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from project import Project, a_case, a_missed_case

SLIP = re.compile(r"(?<![\d.,@=/:·-])(?<!of )(?<!top )(?<!rank )(?<!gold )\b1 (?!has\b|was\b)[a-z]{3,}s\b(?!/)")
TAGS = re.compile(r"<(script|style).*?</\1>|<[^>]+>", re.DOTALL)


def texts(project: Project) -> Iterator[tuple[str, str]]:
    """What each face shows, by name."""
    project.cases([a_case("only"), a_missed_case("other")])
    project.run("--rageval-update-baseline")
    project.cases([a_missed_case("only")])
    yield "pytest", project.run("-v").stdout.str()
    yield "pytest, broken", project.run("-v", "--rageval-target", "bot:nothing").stdout.str()
    yield "run", project.rageval("run").stdout.str()
    folder = project.runs[-1]
    yield "summary.md", (folder / "summary.md").read_text(encoding="utf-8")
    yield "report.html", TAGS.sub("\n", (folder / "report.html").read_text(encoding="utf-8"))
    for command in (
        ["explain", "latest", "only"], ["compare", "baseline", "latest"], ["compare", "latest~1", "latest"],
        ["compare", "baseline", "latest", "--format", "markdown"], ["history"], ["history", "--metric", "mrr"],
        ["runs", "list"], ["runs", "show", "latest"], ["gate", "latest"], ["comment"], ["doctor"],
        ["cases", "validate"], ["cases", "stats"], ["cases", "audit"], ["runs", "prune", "--keep", "1", "--dry-run"],
    ):  # fmt: skip
        result = project.rageval(*command)
        yield " ".join(command), f"{result.stdout.str()}\n{result.stderr.str()}"


def test_one_thing_is_never_said_in_the_plural(project: Project):
    slips = [
        f"{face}: {line.strip()}" for face, text in texts(project) for line in text.splitlines() if SLIP.search(line)
    ]
    assert not slips, "\n".join(slips)
