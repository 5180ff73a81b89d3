"""The whole story with somebody else's chatbot, FastAPI with a JSON of its own; the tutorial has it with the demo."""

from __future__ import annotations

import importlib.util
import io
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from processes import PATIENCE_S, wait_until
from project import Project

BOT = Path(__file__).parent / "data" / "foreign_bot"
CONFIGURATION = """
notes = "notes"

[target]
url = "{url}"

[target.mapping]
path = "/chat"
request = {{ message = "{{question}}", top = "{{k}}", threshold = "{{params.threshold}}" }}

[target.mapping.response]
answer = "reply"
abstained = "!knows"

[target.mapping.response.retrieved_chunks]
each = "sources"
rel_path = "file"
heading_path = "join(' > ', headings)"
text = "passage"
score_final = "relevance"

[params]
threshold = {threshold}
"""
ELSEWHERE = [
    {"id": f"elsewhere-{at}", "question": question, "answerable": False}
    for at, question in enumerate(["Where was Napoleon born?", "Whose painting shows Mona Lisa?"])
]


@pytest.fixture
def bot_url(project: Project) -> Iterator[str]:
    """The bot, served by uvicorn from the project's folder."""
    for path in project.path.iterdir():
        path.unlink()
    shutil.copytree(BOT, project.path, dirs_exist_ok=True)
    spec = importlib.util.spec_from_file_location("handbook_bot", project.path / "handbook_bot.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server = uvicorn.Server(uvicorn.Config(module.app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started, "the bot is served")
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)


def json_of(project: Project, *words: str) -> dict[str, Any]:
    result = project.rageval(*words, "--json")
    return json.loads("\n".join(result.outlines))


def test_from_an_empty_folder_to_a_regression_that_is_caught(
    project: Project, bot_url: str, monkeypatch: pytest.MonkeyPatch
):
    begun = json_of(project, "init", "--target", bot_url, "--notes", "notes")
    written = ["rageval.toml", "evalcases/first.jsonl", "reports/.gitignore", "evalcases/.gitignore"]
    assert [file["path"] for file in begun["files"]] == written
    project.write("rageval.toml", CONFIGURATION.format(url=bot_url, threshold=0.95))
    project.cases(ELSEWHERE, "evalcases/elsewhere.jsonl")
    assert json_of(project, "doctor")["ready"]

    drafted = json_of(project, "generate", "notes")
    assert drafted["new_drafts"] == 6
    assert drafted["next"] == ["rageval label evalcases/notes.drafts.jsonl"]
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 6 + "q\n"))
    assert project.rageval("label", "evalcases/notes.drafts.jsonl", "--plain").ret == 0
    assert json_of(project, "cases", "validate")["cases"] == 2 + 2 + 1 + 6  # of init, elsewhere, of init, drafts
    assert json_of(project, "cases", "audit")["unwinnable"] == []

    assert project.rageval("run").ret == 1
    assert project.metrics()["metrics"]["recall_any@5"]["mean"] == 0

    swept = json_of(project, "sweep", "--grid", "threshold=0.2,0.95")
    assert swept["recommended"]["params"] == {"threshold": 0.2}
    assert swept["difference"]["better"]
    assert swept["toml"] == "[params]\nthreshold = 0.2"
    assert swept["next"][0] == "rageval run --param threshold=0.2"
    project.write("rageval.toml", CONFIGURATION.format(url=bot_url, threshold=0.2))

    accepted = project.run("-q", "--rageval-update-baseline")
    assert accepted.ret == 0
    worse = project.run("-q", "--rageval-param", "threshold=0.95")
    assert worse.ret == 1
    worse.stdout.fnmatch_lines(["FAILED rageval-gates::recall_any@5 drop - *"])
    compared = json_of(project, "compare", "baseline", "latest")
    assert [change["name"] for change in compared["configuration"]] == ["params.threshold"]
    assert compared["failed_gates"] == ["recall_any@5 drop"]
    assert project.rageval(*compared["next"][0].split()[1:]).ret == 0
