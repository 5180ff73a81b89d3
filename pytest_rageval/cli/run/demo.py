"""`rageval demo`: the embedded system under test, served over HTTP for trying the real target."""

from __future__ import annotations

import asyncio
import os

import click

from pytest_rageval.errors import SettingsError


@click.group()
def demo() -> None:
    """The embedded demo system: a small RAG system over shipped notes, offline."""


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
    # Imported here: the group's help needs neither the Markdown parser nor SQLite.
    from pytest_rageval.demo.app import create_app
    from pytest_rageval.demo.llm import Llm
    from pytest_rageval.demo.server import serve as serve_app

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
