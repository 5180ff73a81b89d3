"""The form of a page as a browser without scripts sends it: every field with what stands in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

Fields = dict[str, str | list[str]]


class _Forms(HTMLParser):
    """The forms of a page that write, each with its address and its fields."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[tuple[str, Fields]] = []
        self._field: str | None = None
        self._text = ""
        self._is_open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and given.get("method") == "post":
            self.forms.append((given["action"], {}))
            self._is_open = True
        elif not self._is_open:
            return
        elif tag == "input":
            self._take_input(given)
        elif tag == "textarea":
            self._field, self._text = given["name"], ""
        elif tag == "select":
            self._field = given["name"]
            self._is_first = True
        elif tag == "option" and self._field is not None and (self._is_first or "selected" in given):
            self._choose(self._field, given["value"])

    def _take_input(self, given: dict[str, str]) -> None:
        kind = given.get("type", "text")
        if kind == "file" or "name" not in given or (kind in ("checkbox", "radio") and "checked" not in given):
            return
        self._add(given["name"], given.get("value", "on" if kind in ("checkbox", "radio") else ""))

    def _choose(self, name: str, value: str) -> None:
        fields = self.forms[-1][1]
        if self._is_first:
            self._add(name, value)
        else:
            there = fields[name]
            fields[name] = [*there[:-1], value] if isinstance(there, list) else value
        self._is_first = False

    def _add(self, name: str, value: str) -> None:
        fields = self.forms[-1][1]
        there = fields.get(name)
        fields[name] = value if there is None else [*(there if isinstance(there, list) else [there]), value]

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._field is not None:
            # The first line break behind the tag is no part of the text, and each one is sent as CR LF.
            self._add(self._field, re.sub(r"\r?\n", "\r\n", self._text.removeprefix("\n")))
        if tag in ("textarea", "select"):
            self._field = None
        if tag == "form":
            self._is_open = False


def sent_by(page: str, address: str) -> Fields:
    """What the form to this address sends as it stands, but for the word of the session; no button pressed."""
    parser = _Forms()
    parser.feed(page)
    fields = next(dict(fields) for action, fields in parser.forms if action == address)
    fields.pop("form_token")
    return fields


def errors_beside(page: str) -> dict[str, list[str]]:
    """What a page says is wrong, by field."""
    lists = re.findall(r'<ul class="field-errors" id="([^"]*)-errors">(.*?)</ul>', page, re.DOTALL)
    return {name: re.findall(r"<li>(.*?)</li>", items, re.DOTALL) for name, items in lists}
