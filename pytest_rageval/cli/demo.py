"""`rageval demo`: the embedded system under test, its cases run in a folder, or served over HTTP."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from contextlib import AsyncExitStack, aclosing, suppress
from pathlib import Path

import click

from pytest_rageval.cli.case_files import CaseChoice
from pytest_rageval.cli.options import CODES_OF_PYTEST, PLACE, exit_codes
from pytest_rageval.cli.run import run_in
from pytest_rageval.demo.app import create_app
from pytest_rageval.demo.llm import Llm
from pytest_rageval.errors import SettingsError
from pytest_rageval.make.scaffold import demo_project
from pytest_rageval.providers import FORMS

A_CASE = "imaging-drift-size"
"""One of the shipped cases."""


@click.group()
def demo() -> None:
    """The embedded demo system: a small RAG system over shipped notes, offline."""


@demo.command("run")
@click.argument("folder", type=PLACE, default=Path("rageval-demo"))
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
@click.option("--port", default=8080, show_default=True, type=click.IntRange(0, 65535), help="0: a free one.")
@click.option("--llm", metavar="SPEC", help=f"A model that writes the answers and reranks: {', '.join(FORMS)}.")
def serve(host: str, port: int, llm: str | None) -> None:
    """Serve the demo's API until Ctrl-C. Then: pytest --rageval-target http://HOST:PORT"""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.create_server(address[:2], family=family) as listening, suppress(KeyboardInterrupt):
            asyncio.run(_serve(host, listening, llm))
    except OSError as error:
        # The name service has errors with negative numbers, which only its own text explains.
        is_of_system = error.errno is not None and error.errno > 0
        reason = os.strerror(error.errno) if is_of_system and error.errno else error.strerror
        raise SettingsError(f"cannot listen on {host}:{port}: {reason}; choose another --host or --port") from None


async def _serve(host: str, listening: socket.socket, spec: str | None) -> None:
    import uvicorn  # here, because `demo run` needs no server

    async with AsyncExitStack() as stack:
        llm = None
        writer = ""
        if spec is not None:
            llm = await stack.enter_async_context(aclosing(Llm(spec)))
            writer = f", answers by {llm.name}"
            await llm.check()
        address, bound_port = listening.getsockname()[:2]
        name = f"[{address}]" if ":" in address else address  # IPv6
        click.echo(f"Demo system at http://{name}:{bound_port}{writer} (Ctrl-C ends)")
        config = uvicorn.Config(
            create_app(llm=llm, bound_host=host),
            http="h11",
            ws="none",
            lifespan="off",
            access_log=False,
            proxy_headers=False,
            log_level="error",
            timeout_graceful_shutdown=0,
        )
        server = uvicorn.Server(config)
        # At the end, answers that a model still thinks about are given up without a word.
        logging.getLogger("uvicorn.error").addFilter(lambda _: not server.should_exit)
        await server.serve([listening])
