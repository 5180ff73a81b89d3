"""`rageval demo`: the embedded system under test, its cases run in a folder, or served over HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import click

from pytest_rageval.cli.case_files import CaseChoice
from pytest_rageval.cli.options import CODES_OF_PYTEST, exit_codes
from pytest_rageval.cli.run import run_in
from pytest_rageval.demo.app import create_app
from pytest_rageval.demo.llm import Llm
from pytest_rageval.demo.server import serve as serve_app
from pytest_rageval.errors import SettingsError
from pytest_rageval.tools.scaffold import demo_project

A_CASE = "imaging-drift-size"
"""One of the shipped cases."""


@click.group()
def demo() -> None:
    """The embedded demo system: a small RAG system over shipped notes, offline."""


@demo.command("run")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("rageval-demo"))
@exit_codes(CODES_OF_PYTEST, is_all=True)
def run_demo(folder: Path) -> None:
    """Run the shipped cases against the demo in FOLDER (default: rageval-demo), which is made; no network."""
    demo_project(folder)
    code = run_in(folder.absolute(), CaseChoice())
    click.echo(
        f"\nNow try, after cd {folder}:\n"
        f"  rageval explain latest {A_CASE}   one case in full\n"
        "  rageval run --param min_score=0.9           a worse retriever: which cases newly fail, and why\n"
        "  pytest                                      the same run as tests"
    )
    sys.exit(code)


@demo.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=8080,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 takes a free one.",
)
@click.option(
    "--llm",
    metavar="SPEC",
    help="A language model that writes the answers and reranks: openai:MODEL[@URL], anthropic:MODEL, http://HOST. "
    "Its key is taken from the environment.",
)
def serve(host: str, port: int, llm: str | None) -> None:
    """Serve the demo's API until Ctrl-C. Then: pytest --rageval-target http://HOST:PORT"""
    try:
        asyncio.run(_serve(host, port, llm))
    except KeyboardInterrupt:
        return
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise SettingsError(f"cannot listen on {host}:{port}: {reason}; choose another --host or --port") from None


async def _serve(host: str, port: int, spec: str | None) -> None:
    llm = None if spec is None else Llm(spec)
    writer = "" if llm is None else f", answers by {llm.name}"
    try:
        if llm is not None:
            await llm.check()
        await serve_app(
            create_app(llm=llm), host, port, lambda url: click.echo(f"Demo system at {url}{writer} (Ctrl-C ends)")
        )
    finally:
        if llm is not None:
            await llm.aclose()
