"""Targets behind HTTP, by their kind: imported only where one is chosen, since it loads the client."""

from __future__ import annotations

from typing import Any, cast

from pytest_rageval.config.tables import TargetMapping
from pytest_rageval.errors import SettingsError
from pytest_rageval.http.address import probe
from pytest_rageval.io.masking import public_target
from pytest_rageval.llm.model_spec import model_and_url
from pytest_rageval.targets.asgi_target import AsgiTarget
from pytest_rageval.targets.chat_target import Api, ChatTarget
from pytest_rageval.targets.http_target import ClientTarget, HttpTarget
from pytest_rageval.targets.mapped_target import MappedTarget
from pytest_rageval.targets.target import Connection, Target

__all__ = ["ClientTarget", "probe", "target_over_http"]


def target_over_http(spec: str, app: Any, connection: Connection, mapping: TargetMapping | None) -> Target | None:
    """Return the target that `spec` names, None if it names none; `app` is the application of `asgi:`."""
    kind, _, rest = spec.partition(":")
    if kind in ("openai", "ollama"):
        try:
            return ChatTarget(cast("Api", kind), *model_and_url(kind, rest), connection)
        except SettingsError as error:
            raise SettingsError(*(f"target {public_target(spec)}: {problem}" for problem in error.problems)) from None
    if spec == "demo":
        from pytest_rageval.demo.app import create_app

        app = create_app()
    if app is not None:
        return AsgiTarget(app, spec, connection)
    if kind not in ("http", "https"):
        return None
    return HttpTarget(spec, connection) if mapping is None else MappedTarget(spec, mapping, connection)
