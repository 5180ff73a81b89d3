"""The comment on a pull request: one for each project, identified by its marker and updated in place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.http.client import SlottedClient
from pytest_rageval.http.failures import HttpFailure

PAGES = 30
"""Pages of 100 comments that are searched for ours."""
TIMEOUT = 30.0


class PullRequest(NamedTuple):
    """A pull request to comment on. `repository`: `owner/name`."""

    api: str
    repository: str
    number: int
    token: str


class NoPullRequestError(Exception):
    """No pull request to comment on, or no permission: reported in a line, not a failure."""


def pull_request_of(environment: Mapping[str, str]) -> PullRequest:
    """Return the pull request of this GitHub Actions job from its environment; NoPullRequestError without one."""
    token = environment.get("GITHUB_TOKEN") or environment.get("GH_TOKEN")
    repository = environment.get("GITHUB_REPOSITORY", "")
    # It becomes a part of the URL that the token is sent to.
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise NoPullRequestError("GITHUB_REPOSITORY names no repository: this is no job of GitHub Actions")
    number = _number(environment)
    if number is None:
        raise NoPullRequestError("this job was not started by a pull request")
    if not token:
        raise NoPullRequestError(
            "no GITHUB_TOKEN: give it to the step with `env:`, and the job `permissions: pull-requests: write`"
        )
    return PullRequest(environment.get("GITHUB_API_URL") or "https://api.github.com", repository, number, token)


def _number(environment: Mapping[str, str]) -> int | None:
    """Read the number from the reference of a `pull_request` job, or else from the event that started the job."""
    reference = re.fullmatch(r"refs/pull/(\d+)/(?:merge|head)", environment.get("GITHUB_REF", ""))
    if reference:
        return int(reference[1])
    try:
        event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
        return int(event["pull_request"]["number"])
    # Other events have no pull request, and a runner may have no file of the event.
    except (KeyError, OSError, ValueError, TypeError):
        return None


async def renew_comment(pull_request: PullRequest, name: str, text: str) -> str:
    """Write the comment, or replace the one with the same name; return its address. HttpFailure if GitHub refuses."""
    # Without `>`, a name cannot end the HTML comment.
    marker = f"<!-- pytest-rageval: {re.sub(r'[^A-Za-z0-9._/-]', '-', name)} -->"
    base = f"{pull_request.api.rstrip('/')}/repos/{pull_request.repository}/issues"
    headers = {
        "Authorization": f"Bearer {pull_request.token}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
        "User-Agent": "pytest-rageval",
    }
    client = SlottedClient(slots=1, timeout=TIMEOUT, headers=headers)
    try:
        comments = f"{base}/{pull_request.number}/comments"
        content = {"body": f"{marker}\n{text}"}
        earlier = await _find(client, comments, marker)
        if earlier is None:
            reply = await client.request("POST", comments, json=content)
        else:
            reply = await client.request("PATCH", f"{base}/comments/{earlier}", json=content)
        return _address(reply.body)
    finally:
        await client.aclose()


async def _find(client: SlottedClient, url: str, marker: str) -> int | None:
    """Return the id of the comment that begins with the marker."""
    for page in range(1, PAGES + 1):
        reply = await client.request("GET", f"{url}?per_page=100&page={page}")
        comments = _parse(reply.body)
        if not isinstance(comments, list):
            return None
        for comment in comments:
            # At the beginning: somebody who quotes ours must not lose their comment.
            if isinstance(comment, dict) and str(comment.get("body", "")).startswith(marker):
                return int(comment["id"])
        # A page that is not full is the last one.
        if len(comments) < 100:
            return None
    return None


def _address(body: bytes) -> str:
    comment = _parse(body)
    if not isinstance(comment, dict):
        return "written"
    return str(comment.get("html_url", "written"))


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError as error:
        raise HttpFailure("invalid_json", f"GitHub's reply is no JSON: {error}") from None
