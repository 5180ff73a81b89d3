"""Without any network but loopback: the demo, its report, a comparison, an export and the web app."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from offline import UNSHARE
from project import ALONE, Project
from reliability import Tally

pytestmark = [pytest.mark.child_process, pytest.mark.reliability("network", "a namespace without routes", costs="leak")]

SUPPORT = Path(__file__).parents[1] / "support"
SHIPPED = Path(__file__).parents[2] / "evalcases" / "notes_anchors.jsonl"
INSIDE = (*UNSHARE, sys.executable, str(SUPPORT / "offline.py"))
# In one process: each would load the package anew.
ALL_VERBS = """
import sys
from pathlib import Path
from click.testing import CliRunner
from pytest_rageval.cli.main import rageval
for line in sys.argv[1:]:
    ended = CliRunner().invoke(rageval, line.split(), catch_exceptions=False)
    if ended.exit_code not in (0, 1):
        sys.exit(f"{line}: {ended.exit_code} {ended.output}")
    print("ended", line)
from web_app import served
with served(Path.cwd()) as app:
    for address in ("/", "/runs", "/runs/one", "/health"):
        app.page(address)
        print("shown", address)
"""
LOADS = re.compile(r"""(?:src|<link[^>]*href)=["'](?:https?:)?//""")
"""What a page would load from elsewhere."""
VERBS = (
    "run --target demo --run-id one",
    "run --target demo --run-id two --k 2",
    "report one -o one.html",
    "compare one two --format html -o compared.html",
    "export one --format csv -o one.csv",
    "score one",
    "history",
)


@pytest.fixture(autouse=True)
def _namespace() -> None:
    if (
        shutil.which(UNSHARE[0]) is None
        or subprocess.run([*INSIDE, "true"], capture_output=True, timeout=60).returncode
    ):
        pytest.skip("no network namespace of one's own here: unshare --net is not there, or not permitted")


def inside(project: Project, *command: str, **environment: str) -> pytest.RunResult:
    return project.process(*INSIDE, *command, **ALONE, **environment)


def test_other_machines_cannot_be_reached_and_this_one_can(project: Project):
    connect = "import socket; socket.create_connection(('192.0.2.1', 443), 5)"
    result = inside(project, sys.executable, "-c", connect)
    assert result.ret == 1
    assert "Network is unreachable" in result.stderr.str()
    listen = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname(), 5)"
    assert inside(project, sys.executable, "-c", listen).ret == 0


def test_the_demo_its_report_a_comparison_and_the_web_app_need_no_network(project: Project, tally: Tally):
    tally.tried(len(VERBS) + 4)
    first = SHIPPED.read_text(encoding="utf-8").splitlines(keepends=True)[:5]
    project.write("evalcases/a.jsonl", "".join(first))
    project.configure("")
    result = inside(project, sys.executable, "-c", ALL_VERBS, *VERBS, PYTHONPATH=str(SUPPORT))
    assert result.ret == 0
    lines = result.stdout.str()
    assert [line for line in VERBS if f"ended {line}" not in lines] == []
    assert lines.count("shown /") == 4
    pages = [project.path / name for name in ("one.html", "compared.html")]
    assert [page.name for page in pages if LOADS.search(page.read_text(encoding="utf-8"))] == []
