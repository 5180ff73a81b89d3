"""The server of `rageval init`: asked one question with its key, or described by a sample of its replies."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import click

from pytest_rageval.cli.terminal import clean
from pytest_rageval.config.files import has_table
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.masking import public_target
from pytest_rageval.targets.first_contact import CONTACT_S, FirstContact, contact_of_sample, first_contact
from pytest_rageval.targets.target import Connection
from pytest_rageval.text import printable

TOKEN = "RAGEVAL_TARGET_TOKEN"  # noqa: S105 because it is the name of a variable
HEADER_FORM = re.compile(r"(?P<name>[A-Za-z0-9!#$%&'*+.^_`|~-]+)=(?P<value>env:[A-Za-z_][A-Za-z0-9_]*)")


def read_headers(written: Iterable[str]) -> dict[str, str]:
    """Return the headers of `--header`, which name environment variables: a key itself would end in a file."""
    headers: dict[str, str] = {}
    for header in written:
        match = HEADER_FORM.fullmatch(header)
        if match is None:
            name = printable(header.partition("=")[0])
            raise click.UsageError(f"--header {name}: expected NAME=env:VARIABLE, as in X-Api-Key=env:BOT_KEY")
        headers[match["name"]] = match["value"]
    return headers


def headers_in_file(root: Path, url: str) -> Mapping[str, str]:
    """Return the headers of a configuration in this folder, if it has any and names the same server.

    The keys of one server are none of another's business. A configuration with mistakes has none: `init` helps there.
    """
    if not has_table(root):
        return {}
    try:
        settings = load_settings(root, {}, {})
    except SettingsError:
        return {}
    is_same_server = urlsplit(settings.target or "")[:2] == urlsplit(url)[:2]
    return settings.headers if is_same_server else {}


def ask_server(url: str, question: str, headers: Mapping[str, str], *, is_person: bool) -> FirstContact:
    """Ask a server one question with its headers or the token of the environment; ask a person for a missing key."""
    own = Settings(headers=headers).resolved_headers()
    contact = _asked(url, question, own, os.environ.get(TOKEN, ""))
    if not contact.is_refused:
        return contact
    variables = [value.removeprefix("env:") for value in headers.values() if value.startswith("env:")]
    if is_person and not variables:
        click.echo(clean("\n".join(contact.findings)))
        token = click.prompt("It wants a key (not stored, not shown)", hide_input=True, default="", show_default=False)
        os.environ[TOKEN] = token  # of this process alone: what is shown loses it
        contact = _asked(url, question, own, token)
    if contact.is_answered and not is_person:
        return contact
    if variables:
        remedy = f"it refuses the key: check {', '.join(variables)}"
    else:
        remedy = (
            f"it wants a key: set {TOKEN}, sent as a bearer token, or name a header with --header NAME=env:VARIABLE"
        )
    return contact._replace(findings=(*contact.findings, remedy))


def _asked(url: str, question: str, headers: Mapping[str, str], token: str) -> FirstContact:
    sent = {name.lower(): value for name, value in headers.items()}
    if token:
        sent = {"authorization": f"Bearer {token}"} | sent
    return asyncio.run(first_contact(url, question, Connection(timeout=CONTACT_S, headers=sent)))


def read_sample(reply: Path, url: str, path: str | None, *, is_person: bool) -> FirstContact:
    """Read a sample reply; ask for the path of the server, which no reply tells, if its URL has none."""
    contact = contact_of_sample(reply.read_bytes(), reply.name)
    if contact.mapping is None:
        return contact
    has_path = urlsplit(url).path not in ("", "/")
    if path is None and has_path:
        return contact
    if path is None and is_person:
        path = click.prompt("Path where the server takes a question, as in /ask", default="/").strip()
    if path is None:
        findings = (*contact.findings, "missing: the path of the server; --path names it, as in /ask")
        return contact._replace(findings=findings, is_path_missing=True)
    return contact._replace(mapping={"path": f"/{path.lstrip('/')}", **contact.mapping})


def with_remedy_for_chunks(contact: FirstContact) -> FirstContact:
    """Add what helps if the reply showed no chunks."""
    if contact.mapping is None or "retrieved_chunks" in contact.mapping["response"]:
        return contact
    remedy = "no chunks: ask what the system can answer with --question TEXT, or give a good reply with --reply FILE"
    return contact._replace(findings=(*contact.findings, remedy))


def problem_of_server(contact: FirstContact, url: str) -> str | None:
    """Return why no run can ask the server yet, None if one can."""
    server = clean(public_target(url))
    if not contact.is_usable:
        return f"{server}: no readable reply, so no run can ask it yet; mend that, and call rageval init again"
    if contact.is_path_missing:
        return f"{server}: it is not known where it takes a question; name the path with --path, as in --path /ask"
    return None
