"""Attacks typed into every field of every form, in a real browser with the policy on: all come back as text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import Chromium, OpenPage
from hostile import TEXTS, hostile_site, pages_of
from web_app import WebApp, served

pytestmark = [pytest.mark.browser, pytest.mark.torture]
FORMS = """() => [...document.querySelectorAll("form")].map((form) =>
  [...form.querySelectorAll("input, textarea, select")].some((field) => field.name && field.type !== "hidden"))"""
TYPE = """([number, texts]) => {
  const form = document.querySelectorAll("form")[number];
  form.noValidate = true;
  for (const field of form.querySelectorAll("input, textarea, select")) {
    if (["hidden", "file", "submit"].includes(field.type)) continue;
    for (const name of ["maxlength", "required", "pattern", "min", "max"]) field.removeAttribute(name);
    if (["number", "checkbox", "radio"].includes(field.type)) field.type = "text";
    if (field.matches("select")) field.append(new Option(texts, texts, true, true));
    else field.value = texts;
  }
  window.isOld = true;
  HTMLFormElement.prototype.requestSubmit.call(form, form.querySelector("button:not([name=reset])") || undefined);
}"""

EXPECTED = ("Failed to load resource", "The specified value", "Response Status Error Code 4")
"""Said by the browser of a form that was refused, and of a text in a field for a number."""
ANSWERED = """() => {  // another page, or this one with the part that a script has asked for
  window.waited = (window.waited || 0) + 1;
  return document.readyState === "complete" && (!window.isOld || window.waited > 40);
}"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    with served(hostile_site(tmp_path_factory.mktemp("typed"))) as app:
        yield app


def pages_with_forms(app: WebApp) -> list[str]:
    """One address of each page, since its forms are the same whatever stands on it."""
    return [addresses[0] for addresses in pages_of(app).values() if addresses]


def check(page: OpenPage, app: WebApp, where: str) -> None:
    problems = [problem for problem in page.problems if not any(words in problem for words in EXPECTED)]
    assert (page.evaluate("top.hacked"), problems) == (None, []), where
    assert [request for request in page.requests if not request.startswith(app.address)] == [], where


def test_what_is_typed_anywhere_comes_back_as_text(chromium: Chromium, app: WebApp):
    """All attacks in each field of a form at once: the long way round, one by one, meets the same templates."""
    typed = 0
    with chromium.page() as page:
        for address in pages_with_forms(app):
            page.goto(app.address + address)
            for number, has_fields in enumerate(page.evaluate(FORMS)):
                if not has_fields:
                    continue
                page.goto(app.address + address)
                page.evaluate(TYPE, [number, "\n".join(TEXTS)])
                page.wait_for_function(ANSWERED)
                check(page, app, f"{address}, form {number}")
                typed += 1
    assert typed > 20
