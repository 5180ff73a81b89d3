"""The browser of the tests of pages: one a session; where there is none, they are skipped and say what they need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chromium import Chromium, chromium_path


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    path = chromium_path()
    if path is None:
        pytest.skip("no Chromium is installed (chromium, chromium-browser or google-chrome on the PATH)")
    pytest.importorskip("playwright", reason="playwright is not installed (pip install -e '.[dev]')")
    browser = Chromium(path)
    yield browser
    browser.close()
