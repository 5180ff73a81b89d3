"""A real Chromium for tests of pages: it lives in a thread of its own, since Playwright keeps an event loop running."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from processes import PATIENCE_S

NAMES = ("chromium", "chromium-browser", "google-chrome")
MOST_SHIFT = 0.01
"""Share of a page that may move while nobody scrolls it, as browsers measure it."""
WATCH_SHIFTS = """() => {
  window.shifted = [];
  window.shiftObserver = new PerformanceObserver((list) => window.shifted.push(...list.getEntries()));
  window.shiftObserver.observe({type: "layout-shift", buffered: true});
}"""
SHIFTS = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => {
  window.shifted.push(...window.shiftObserver.takeRecords());
  done(window.shifted.map((each) => [each.value, each.sources.map((source) => source.node?.outerHTML?.slice(0, 80))]));
}))))"""
LOGINS: dict[str, dict[str, str]] = {}
"""Cookies of apps that run, by their address: a page begins logged in to each."""
PATIENCE_MS = 1000 * PATIENCE_S
PLAIN = (str, int, float, bool, bytes, type(None), list, dict)


def chromium_path() -> str | None:
    """Where the machine's own Chromium is; None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class InThread:
    """An object of another thread: what is called here is done there."""

    def __init__(self, thread: ThreadPoolExecutor, target: Any) -> None:
        self._thread, self._target = thread, target

    def __getattr__(self, name: str) -> Any:
        value = self._thread.submit(getattr, self._target, name).result()
        if not callable(value) or isinstance(value, type):
            return self._shown(value)
        return lambda *args, **named: self._shown(self._thread.submit(value, *args, **named).result())

    def _shown(self, value: Any) -> Any:
        return value if isinstance(value, PLAIN) else InThread(self._thread, value)


class OpenPage:
    """A page, and what it did that a page of ours never does: requests, dialogs, errors, violations of its policy."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.answered: list[str] = []
        """Requests that really went out: those that the policy stops are requests to Playwright all the same."""
        self.problems: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.page, name)

    def watch(self) -> None:
        self.page.on("request", lambda request: self.requests.append(request.url[:100]))
        self.page.on("response", lambda response: self.answered.append(response.url[:100]))
        self.page.on("dialog", self._dismiss)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("console", lambda message: self.problems.append(f"console: {message.text}"))

    def _dismiss(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, path: Path, address: str = "") -> OpenPage:
        """Open a file and wait until its script has shown the first rows."""
        self.page.goto(path.as_uri() + address)
        self.page.wait_for_selector("html[data-ready]", state="attached", timeout=PATIENCE_MS)
        return self

    def wait_for_selector(self, selector: str, **options: Any) -> None:
        """Wait for an element, and for the rest of the page that it came with: a key pressed earlier is lost."""
        self.page.wait_for_selector(selector, **options)
        self.page.wait_for_load_state()

    def wait_for_function(self, function: str, **options: Any) -> None:
        """Wait until this is true of the page that is there, and of all of it."""
        self.page.wait_for_function(function, **options)
        self.page.wait_for_load_state()

    def watch_shifts(self) -> None:
        """From here on, and of this page from its beginning."""
        self.page.evaluate(WATCH_SHIFTS)

    def shifts(self) -> list[Any]:
        """What moved on this page, though only a part of it was changed: how much, and which elements."""
        moved: list[Any] = self.page.evaluate(SHIFTS)
        return moved if sum(value for value, _ in moved) > MOST_SHIFT else []

    def go(self, address: str) -> None:
        """Follow an address within the page to the page of a case."""
        self.page.evaluate("address => { location.hash = address; }", address)
        self.page.wait_for_selector("#case .case-bar", timeout=PATIENCE_MS)


class Chromium:
    """One browser for a session of tests."""

    def __init__(self, path: str) -> None:
        self._thread = ThreadPoolExecutor(1, "chromium")
        self._playwright: Any = None
        self._browser = self._thread.submit(self._launch, path).result()

    def _launch(self, path: str) -> Any:
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        options = ["--no-sandbox", "--disable-gpu"]
        return self._playwright.chromium.launch(executable_path=path, args=options, timeout=PATIENCE_MS)

    def close(self) -> None:
        self._thread.submit(self._browser.close).result(60)
        self._thread.submit(self._playwright.stop).result(60)
        self._thread.shutdown()

    def call(self, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Run a function in the browser's thread."""
        return self._thread.submit(function, *args, **named).result()

    @contextmanager
    def page(self, width: int = 1280, height: int = 800, **options: Any) -> Iterator[OpenPage]:
        """A page of its own, without anything kept from others; `options` are those of a Playwright context."""
        context = self.call(self._browser.new_context, viewport={"width": width, "height": height}, **options)
        for address, cookies in LOGINS.items():
            kept = [{"name": name, "value": value, "url": address} for name, value in cookies.items()]
            self.call(context.add_cookies, kept)
        page = self.call(context.new_page)
        self.call(page.set_default_timeout, PATIENCE_MS)
        opened = OpenPage(page)
        self.call(opened.watch)
        opened.page = InThread(self._thread, page)
        try:
            yield opened
        finally:
            self.call(context.close)
