"""Styles, scripts and the icon: files of the package under addresses that name their content, to be kept for ever."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import Response

from pytest_rageval.render.html.environment import asset

TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
SHARED = ("tokens.css", "case_parts.js")
"""Files of the report page, which go into its one file."""
KEPT_FOR_EVER = "public, max-age=31536000, immutable"

router = APIRouter()


class AssetFile(NamedTuple):
    content: bytes
    type: str


@cache
def asset_addresses() -> dict[str, str]:
    """Where each file of the app is found: `web.css` → `/assets/web.1a2b3c4d5e6f.css`."""
    return {name: f"/assets/{_hashed(name, file.content)}" for name, file in _files().items()}


@router.get("/assets/{name}")
def asset_file(name: str) -> Response:
    """A file by its address; the name is looked up, never opened."""
    file = _files_by_address().get(f"/assets/{name}")
    if file is None:
        raise HTTPException(404, "There is no such file.")
    return Response(file.content, media_type=file.type, headers={"Cache-Control": KEPT_FOR_EVER})


def _hashed(name: str, content: bytes) -> str:
    stem, _, suffix = name.rpartition(".")
    return f"{stem}.{sha256(content).hexdigest()[:12]}.{suffix}"


@cache
def _files() -> dict[str, AssetFile]:
    folder = files("pytest_rageval.web").joinpath("assets")
    own = {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name.rpartition(".")[2] in TYPES}
    shared = {name: asset(name).encode() for name in SHARED}
    return {name: AssetFile(content, TYPES[name.rpartition(".")[2]]) for name, content in (shared | own).items()}


@cache
def _files_by_address() -> dict[str, AssetFile]:
    return {address: _files()[name] for name, address in asset_addresses().items()}
