"""Every kind of page with usual content: nothing that an accessibility checker calls serious."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import Chromium
from stored_pages import store_fallen
from stored_runs import origin, rewrite, some_cases, store_full, store_project, updated
from web_app import WebApp, imported, sent_by, served

pytestmark = pytest.mark.browser
CASE = some_cases(1, cases=1)[0].key.replace("/", "%2F")
ADDRESSES = (
    "/", "/runs", "/runs/now", "/runs/shop-2", "/runs/killed", "/runs/broken", f"/runs/now/cases/{CASE}",
    f"/runs/now/cases/{CASE}", "/compare", "/compare?a=before&b=now", "/compare/answers?a=before&b=now",
    "/history", "/agents", "/agents/new", "/agents/shop-bot", "/agents/shop-bot/edit", "/datasets", "/datasets/new",
    "/datasets/questions", "/datasets/questions/versions/1/audit", "/new-run", "/label", "/health", "/runs/nothing",
)  # fmt: skip


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    root = tmp_path_factory.mktemp("usual")
    reports = store_project(root)
    store_fallen(reports, failing=4, cases=20)
    other = store_full(reports, "other", some_cases(1))
    rewrite(other / "config.json", updated(origin=origin("help-bot", 1)))
    (reports / "runs" / "now" / "ratings.json").write_text('{"schema": 1, "ratings": {}}')
    (root / "evalcases").mkdir()
    (root / "evalcases" / "a.jsonl").write_text('{"id": "a", "question": "Why?"}\n')
    with served(root) as app:
        sent = sent_by(app.page("/agents/new"), "/agents") | {"name": "Shop bot", "header_name": "Authorization"}
        assert app.post("/agents", sent | {"header_value": "env:NO_SUCH_KEY"}).status_code == 303
        imported(app, "Questions")
        yield app


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_finding(chromium: Chromium, app: WebApp, width: int, scheme: str):
    if (width, scheme) == (390, "dark"):
        pytest.skip("the colours are those of the wide pages")
    found: dict[str, list[str]] = {}
    with chromium.page(width, color_scheme=scheme) as page:
        for address in ADDRESSES:
            page.goto(app.address + address)
            if page.evaluate("document.documentElement.scrollWidth") > width:
                found[address] = ["wider than the window"]
            report = chromium.call(lambda: Axe().run(page.page._target)).response["violations"]
            for rule in report:
                if rule["impact"] in ("serious", "critical"):
                    nodes = [node["html"][:140] for node in rule["nodes"]]
                    found.setdefault(address, []).append(f"{rule['id']}: {nodes[:4]}")
    assert found == {}
