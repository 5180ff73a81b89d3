"""Files beside the case files: an ending in capitals is read, and what is not read is named."""

from __future__ import annotations

import json

import pytest
from project import SOME, Project, a_missed_case

pytestmark = pytest.mark.reliability("false greens", "case files with other endings", costs="false green")

CASE = json.dumps(a_missed_case("missed")) + "\n"
TABLE = "id,question,reference\nmissed,When does ice melt?,Never at all\n"
READ = {"more.JSONL": CASE, "EXPORT.CSV": TABLE, "Mixed.Jsonl": CASE}
UNREAD = {"b.ndjson": CASE, "b.json": f"[{CASE}]", "b.tsv": TABLE, "b.jsonl.gz": "x", "c.jsonl~": CASE, "B.XLSX": "x"}
FACES = {"pytest": (), "run": ("run",), "validate": ("cases", "validate"), "doctor": ("doctor",)}


@pytest.mark.parametrize("how", ["pytest", "run", "named"])
@pytest.mark.parametrize("name", READ)
def test_an_ending_in_capitals_is_one_of_case_files(project: Project, name: str, how: str):
    project.cases(SOME)
    project.write(f"evalcases/{name}", READ[name])
    if how == "named":
        result = project.run(f"evalcases/{name}")
    else:
        result = project.run() if how == "pytest" else project.rageval("run")
    assert result.ret == 1
    assert project.outcomes()["missed"] == "failed"


@pytest.mark.parametrize("face", FACES)
def test_what_looks_like_cases_and_is_not_read_is_named(project: Project, face: str):
    project.cases(SOME)
    for name, content in UNREAD.items():
        project.write(f"evalcases/{name}", content)
    project.write("evalcases/settings.json", '{"a": 1}')
    result = project.run() if face == "pytest" else project.rageval(*FACES[face])
    shown = " ".join((result.stdout.str() + result.stderr.str()).split())
    assert "not read, since case files end in .jsonl or .csv" in shown
    assert "3 more" in shown
    assert "settings.json" not in shown


@pytest.mark.parametrize("name", UNREAD)
def test_each_of_them_is_named(project: Project, name: str):
    project.cases(SOME)
    project.write(f"evalcases/{name}", UNREAD[name])
    assert name in project.rageval("cases", "validate").stderr.str()
