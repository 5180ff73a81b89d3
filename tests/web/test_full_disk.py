"""A disk that is full: every form ends in a sentence, nothing is stored half, and nothing that was there is lost."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from hostile import write_job
from stored_pages import store_fallen
from web_app import Fields, WebApp, confirm, sent_by, served, upload

from pytest_rageval.web.app import ROUTERS

pytestmark = pytest.mark.reliability("web", "a full disk")

resource = pytest.importorskip("resource")
Full = Callable[[], Any]
Sent = tuple[str, str, Mapping[str, Any], Mapping[str, Any]]
"""A form: the route that takes it, its address, its fields and its files."""
ROWS = b"id,question,reference\nq1,Why?,Because\nq2,Where?,Here\n"
KEEPS_NOTHING = {
    "/datasets/{slug}/label/finish",
    "/login", "/logout", "/health", "/label/anew", "/jobs/{job_id}/cancel", "/new-run/answers/{upload_id}/discard",
    "/datasets/{slug}/label/discard",
}  # fmt: skip
STARTS_A_PROCESS = {"/new-run", "/new-run/answers/{upload_id}", "/jobs/{job_id}/resume"}
STOPPED = "20261122_100000"


@contextmanager
def no_file_grows() -> Iterator[None]:
    """No byte can be added to a file by this process, as on a full disk; needs no rights."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Another file takes all that is left."""
    stuffing = folder / "stuffing"
    with stuffing.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                pass
    try:
        yield
    finally:
        stuffing.unlink()


@pytest.fixture(params=["limit", "tmpfs"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Full]]:
    """A project's folder, and what fills the disk below it."""
    if request.param == "limit":
        yield tmp_path, no_file_grows
        return
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(tmp_path)]
    if os.getuid() != 0 or subprocess.run(mount, check=False, capture_output=True, timeout=60).returncode:
        pytest.skip("a file system of its own can be mounted by root alone")
    try:
        yield tmp_path, lambda: filled(tmp_path)
    finally:
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True, timeout=60)


def contents(root: Path) -> dict[str, bytes]:
    """All files of the project."""
    files = (path for folder in ("data", "evalcases", "reports") for path in (root / folder).rglob("*"))
    return {str(path.relative_to(root)): path.read_bytes() for path in files if path.is_file()}  # fmt: skip


def forms(app: WebApp) -> Iterator[Sent]:
    """A form for each route that writes, as the page that holds it sends it."""

    def typed(page: str, address: str) -> Fields:
        return sent_by(app.page(page), address)

    yield "/agents", "/agents", typed("/agents/new", "/agents") | {"name": "another"}, {}
    yield "/agents/{slug}", "/agents/demo", typed("/agents/demo/edit", "/agents/demo") | {"k": "7"}, {}
    yield "/demo/agent", "/demo/agent", {}, {}
    yield "/demo/questions", "/demo/questions", {}, {}
    yield "/datasets/uploads", "/datasets/uploads", {}, {"cases": ("c.csv", io.BytesIO(ROWS))}
    waiting = upload(app, ("w.csv", ROWS))
    confirmed = typed(waiting, waiting) | {"action": "import", "name": "n"}
    yield "/datasets/uploads/{upload_id}", waiting, confirmed, {}
    case = "/datasets/set/versions/1/cases/1"
    edited = typed(case, case) | {"question": "Other?"}
    yield "/datasets/{slug}/versions/{number}/cases/{position}", case, edited, {}
    run: Fields = {"agent": "demo/1", "dataset": "set/1", "source": "connector", "description": "", "action": "start"}
    yield "/new-run", "/new-run", run, {}
    answers = "".join(json.dumps({"id": id, "answer": "x"}) + "\n" for id in ("q1", "q2")).encode()
    run["source"] = "uploaded answers"
    yield "/new-run", "/new-run", run, {"answers": ("a.jsonl", io.BytesIO(answers))}
    sent = app.post("/new-run", run, files={"answers": ("a.jsonl", io.BytesIO(answers))})
    yield "/new-run/answers/{upload_id}", str(sent.headers["location"]), {}, {}
    label, desk = "/datasets/set/label", "/label/cases?dataset=set"
    yield "/datasets/{slug}/label", label, typed("/datasets/set", label), {}
    yield "/label/cases", "/label/cases", typed(desk, "/label/cases") | {"do": "unanswerable"}, {}
    lines = (app.settings.reports / "runs" / "now" / "results.jsonl").read_text().splitlines()
    yield "/runs/selected", "/runs/selected", {"action": "archive", "run": "before"}, {}
    yield "/runs/{run_id}/description", "/runs/now/description", {"description": "x"}, {}
    key = json.loads(lines[0])["case_key"]
    yield "/runs/{run_id}/draft", "/runs/now/draft", {"case": key}, {}
    yield "/runs/{run_id}/rating", "/runs/now/rating", {"case": key, "do": "up", "note": "right"}, {}
    yield "/jobs/{job_id}/resume", f"/jobs/{STOPPED}/resume", {}, {}


def stopped_job(root: Path) -> None:
    """A run whose processes were killed before its first case ended."""
    folder, run_folder = root / "data" / "jobs" / STOPPED, root / "reports" / "runs" / STOPPED
    write_job(folder)
    (folder / "ended.json").unlink()
    (folder / "rageval.toml").write_text("", encoding="utf-8")
    run_folder.mkdir(parents=True)
    (run_folder / "config.json").write_bytes((root / "reports" / "runs" / "now" / "config.json").read_bytes())


@pytest.mark.child_process
def test_every_form_says_that_the_disk_is_full_and_is_taken_once_there_is_room(place: tuple[Path, Full]):
    root, full = place
    store_fallen(root / "reports", failing=2, cases=4)
    (root / "reports" / "runs" / "now" / "observations.jsonl").unlink()
    (root / "evalcases").mkdir()
    stopped_job(root)
    all_routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    routes = {route.path for route in all_routes if "POST" in (route.methods or ())}
    with served(root) as app:
        app.post("/demo/agent")
        assert confirm(app, upload(app, ("set.csv", ROWS)), name="set").status_code == 303
        for route, address, fields, files in forms(app):
            routes.discard(route)
            token, before = app.form_token(), contents(root)
            with full():
                data = {"form_token": token} | dict(fields)
                response = app.client.post(address, data=data, files=files or None, follow_redirects=True)
            is_there_already = route == "/demo/agent"
            assert is_there_already or re.search("No space left on device|File too large", response.text), (
                f"{route}: {response.status_code}\n{response.text}"
            )
            assert response.status_code in (200, 409, 422, 507), route
            assert contents(root) == before, route
            if route not in STARTS_A_PROCESS:
                if route == "/label/cases":  # the mark waits in the session, and is written with the next one
                    fields = sent_by(app.page("/label/cases?dataset=set"), route) | {"do": "next"}
                for _, file in files.values():
                    file.seek(0)
                again = app.post(address, fields, files=files or None)
                assert again.status_code == 303, f"{route}: {again.status_code}\n{again.text}"
    assert {route for route in routes if not route.startswith("/api/")} == KEEPS_NOTHING
