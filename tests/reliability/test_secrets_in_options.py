"""A credential that the user writes into an option, the table, a case or a hook: it is in no file and on no screen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from project import Project, a_case, a_missed_case

pytestmark = pytest.mark.reliability("secrets", "keys in options, tables, cases and hooks", costs="leak")

KEY = "S3cr3tValue-abcdefgh-98765XYZ"
# Not of target, judge and metrics: what stands in a specification is the name of a model or module, and no secret.
OPTIONS = {
    "description": ("--rageval-description", f"with {KEY}"),
    "parameter": ("--rageval-param", f"note={KEY}"),
    "gate of a run": ("--rageval-gate", f"run recall_any >= 0 when category={KEY}"),
    "run id": ("--rageval-run-id", f"run-{KEY}"),
    "resumed run": ("--rageval-resume", KEY),
    "baseline": ("--rageval-baseline", f"{KEY}.json"),
    "skipped": ("--rageval-skip", KEY),
}
TABLES = {
    "version": f'[tool.rageval.versions]\nllm = "{KEY}"',
    "parameter": f'[tool.rageval.params]\nnote = "{KEY}"',
    "gate": f'[tool.rageval.gates]\ncase = ["recall_any >= 0 when category={KEY}"]',
    "phrase": f'[tool.rageval.abstention]\nphrases = ["{KEY}"]',
    "unknown key": f'[tool.rageval."{KEY}"]\na = 1',
    "prefix": f'path_prefix = "{KEY}"',
}
FIELDS: dict[str, dict[str, Any]] = {
    "question": {"question": f"What is the boiling point? {KEY}"},
    "category": {"category": KEY},
    "tags": {"tags": [KEY]},
    "gold": {"gold": {"answer": KEY}},
    "place": {"gold_supports": [{"rel_path": f"{KEY}.md", "heading_path": ""}]},
    "metadata": {"metadata": {"note": KEY}},
    "history": {"history": [{"role": "user", "text": KEY}]},
    "assertion": {"assert": [{"contains": KEY}]},
    "difficulty": {"difficulty": KEY},
    "id": {"id": f"case-{KEY}"},
}
HOOK = (
    "import os\ndef pytest_rageval_run_config(config, run_config):\n"
    '    run_config["versions"]["llm"] = os.environ["MY_BOT_TOKEN"]\n'
    "def pytest_rageval_result(item, result):\n    print(os.environ['MY_BOT_TOKEN'])\n"
)
LATER = (
    ("explain", "latest", "missed", "--full"),
    ("comment", "latest"),
    ("runs", "show", "latest"),
    ("runs", "list"),
    ("history",),
    ("report", "latest"),
    ("gate", "latest"),
    ("score", "latest"),
    ("export", "latest", "--format", "csv", "-o", "reports/x.csv"),
    ("cases", "validate"),
    ("cases", "stats"),
)


@pytest.fixture
def project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("MY_BOT_TOKEN", KEY)
    project.cases([a_case("boil"), a_missed_case("missed")])
    return project


def told_in(project: Project, *arguments: str) -> list[str]:
    """Run pytest and the verbs on its run; return the places that show the key."""
    shown = {"pytest": project.run("-v", "--junitxml=reports/j.xml", *arguments)}
    shown |= {" ".join(verb): project.rageval(*verb) for verb in LATER}
    places = [name for name, result in shown.items() if KEY in result.stdout.str() + result.stderr.str()]
    return places + [str(path) for path in files_of(project.path / "reports") if KEY in read(path)]


def files_of(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() or KEY in path.name]


def read(path: Path) -> str:
    content = path.read_bytes() if path.is_file() else b""
    return path.name + content.decode("utf-8", "replace")


@pytest.mark.parametrize("name", OPTIONS)
def test_a_key_in_an_option_is_shown_nowhere(project: Project, name: str):
    assert told_in(project, *OPTIONS[name]) == []


@pytest.mark.parametrize("name", TABLES)
def test_a_key_in_the_table_is_shown_nowhere(project: Project, name: str):
    project.configure(f'target = "bot:answer"\n{TABLES[name]}')
    assert told_in(project) == []


@pytest.mark.parametrize("name", FIELDS)
def test_a_key_in_a_case_is_in_no_file(project: Project, name: str):
    project.cases([a_missed_case("missed"), a_case("with-key") | FIELDS[name]])
    assert told_in(project) == []


def test_a_key_that_hooks_give_is_shown_nowhere(project: Project):
    project.write("conftest.py", HOOK)
    assert told_in(project) == []


@pytest.mark.parametrize("verb", [(), ("run",), ("cases", "validate")], ids=["pytest", "run", "validate"])
def test_an_id_with_a_key_is_refused_with_its_place(project: Project, verb: tuple[str, ...]):
    project.write("evalcases/a.jsonl", "\n" + json.dumps(a_case(f"case-{KEY}")) + "\n")
    result = project.rageval(*verb) if verb else project.run()
    assert result.ret != 0
    shown = result.stdout.str() + result.stderr.str()
    assert "evalcases/a.jsonl:2: the id of the case holds a credential" in " ".join(shown.split())
    assert KEY not in shown
