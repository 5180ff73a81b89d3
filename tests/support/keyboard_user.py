"""A person in front of a real Chromium who has no mouse: Tab, Enter, arrows and letters, and eyes for the focus."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import NamedTuple

from chromium import Chromium, OpenPage
from processes import PATIENCE_S

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
        self.wait_until(f"document.querySelector('main').innerText.includes({text!r})")

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
