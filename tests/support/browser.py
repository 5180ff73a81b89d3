"""A real Chromium for tests of pages, and a person in front of it who has no mouse."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from processes import PATIENCE_S

NAMES = ("chromium", "chromium-browser", "google-chrome")
MOST_SHIFT = 0.01
"""Share of a page that may move while nobody scrolls it, as browsers measure it."""
WATCH_SHIFTS = """(since) => {
  const place = ({x, y, width, height}) => [x, y, width, height].map(Math.round).join(" ");
  // Named at once: a node that was taken out of the page meanwhile is null later, and text has no outerHTML.
  const described = ({node, previousRect, currentRect}) =>
    `${node?.outerHTML?.slice(0, 80) ?? node?.nodeName ?? "gone"}: ${place(previousRect)} -> ${place(currentRect)}`;
  window.shifted = [];
  window.noteShifts = (entries) => {
    for (const each of entries.filter((entry) => entry.startTime >= since))
      window.shifted.push([each.value, Math.round(each.startTime), each.sources.map(described)]);
  };
  window.shiftObserver?.disconnect();
  window.shiftObserver = new PerformanceObserver((list) => window.noteShifts(list.getEntries()));
  window.shiftObserver.observe({type: "layout-shift", buffered: true});
}"""
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"
"""What is there has been laid out and shown; when, in ms since the page began."""
SHIFTS = """(after) => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => {
  window.noteShifts(window.shiftObserver.takeRecords());
  done(window.shifted);
}, after))))"""
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

    def watch_shifts(self, *, from_now: bool = False) -> None:
        """Note what moves on this page, from its beginning, or from now on: once what is there has been drawn."""
        since = self.page.evaluate(DRAWN) if from_now else 0
        self.page.evaluate(WATCH_SHIFTS, since)

    def shifts(self, after_ms: int = 0) -> list[Any]:
        """What moved on this page, though only a part of it was changed: how much, when, and which elements."""
        moved: list[Any] = self.page.evaluate(SHIFTS, after_ms)
        return moved if sum(value for value, _, _ in moved) > MOST_SHIFT else []

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


MOST_TABS = 150
FOCUS = """() => {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  const style = getComputedStyle(element), box = element.getBoundingClientRect();
  const labels = [...(element.labels || [])].map(label => label.innerText).join(" ");
  const name = element.getAttribute("aria-label") || labels || element.innerText || element.name || "";
  return {
    tag: element.tagName.toLowerCase(),
    name: name.replace(/\\s+/g, " ").trim(),
    isOutlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0,
    isInView: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth && box.width > 0,
  };
}"""


class Focus(NamedTuple):
    """What has the focus, as one sees it."""

    tag: str
    name: str
    is_outlined: bool
    is_in_view: bool


class KeyboardUser:
    """What the keys do is waited for as a person waits: until the page shows it."""

    def __init__(self, chromium: Chromium, page: OpenPage) -> None:
        self.chromium, self.page = chromium, page
        self.trail: list[str] = []

    @property
    def focus(self) -> Focus | None:
        focus = self.page.evaluate(FOCUS)
        return None if focus is None else Focus(*focus.values())

    def has_focus(self, name: str) -> bool:
        focus = self.focus
        return focus is not None and focus.name.startswith(name)

    def tab_to(self, name: str, tag: str = "", *, backwards: bool = False) -> int:
        """Press Tab until what is called so has the focus; how many times. Each stop on the way can be seen."""
        for count in range(1, MOST_TABS):
            self.page.keyboard.press("Shift+Tab" if backwards else "Tab")
            focus = self.focus
            self.trail.append(f"{self.path}: {focus}")
            if focus is None:
                continue
            assert focus.is_outlined, f"{self.path}: nobody sees that {focus} has the focus"
            assert focus.is_in_view, f"{self.path}: {focus} has the focus and is out of sight"
            if focus.name.startswith(name) and focus.tag.startswith(tag):
                return count
        raise AssertionError(f"{self.path}: Tab never comes to {name!r}: {self.trail[-MOST_TABS:]}")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def go(self, name: str, path: str, tag: str = "", *, key: str = "Enter") -> int:
        """Tab to something, press it, and wait for the page at this path; how many times Tab was pressed."""
        count = self.tab_to(name, tag)
        self.press(key)
        self.wait_for_path(path)
        return count

    def skip_to_content(self) -> None:
        """The first Tab of a page shows the link that skips its head."""
        assert self.tab_to("to the content") == 1, self.trail
        self.press("Enter")

    def choose_file(self, file: Path) -> None:
        """Press the field for a file that has the focus, and choose one in the window that comes."""

        from playwright.sync_api import TimeoutError as WaitedTooLongError

        def choose() -> None:
            page = self.page.page._target
            with page.expect_file_chooser(timeout=20_000) as chooser:
                page.keyboard.press("Enter")
            chooser.value.set_files(str(file))

        # A key that is pressed before the browser watches for the window opens one that nobody sees: once more then.
        for _ in range(5):
            with contextlib.suppress(WaitedTooLongError):
                return self.chromium.call(choose)
        return self.chromium.call(choose)

    @property
    def path(self) -> str:
        return str(self.page.evaluate("location.pathname + location.search"))

    def wait_for_path(self, path: str) -> None:
        """Until the page at a path that begins so is there and has been read."""
        self.wait_until(
            f"location.pathname.startsWith({path!r}) && document.readyState === 'complete' && !!window.htmx"
        )

    def wait_for_text(self, text: str) -> None:
        self.wait_until(f"document.querySelector('main')?.innerText.includes({text!r})")

    def wait_for_focus(self, name: str) -> None:
        """Until what is called so has the focus, without a key."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.has_focus(name):
            assert time.monotonic() < deadline, (name, self.focus)
            time.sleep(0.05)

    def wait_until(self, claim: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self._is_true(claim):
            assert time.monotonic() < deadline, (claim, self.path, self.page.inner_text("main")[:2000])
            time.sleep(0.05)

    def _is_true(self, claim: str) -> bool:
        try:
            return bool(self.page.evaluate(claim))
        except Exception as error:  # which Playwright raises where the page goes away meanwhile
            if "context was destroyed" not in str(error) and "navigation" not in str(error):
                raise
            return False
