"""The target of a spec, or of an overridden `rag_client` fixture.

Target modules are imported only if chosen: scoring a file of answers never loads an HTTP library.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pytest_rageval.config.options import PYTHON, SPELLINGS, is_target, kind_of
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.importing import plugged_in
from pytest_rageval.io.masking import public_unknown
from pytest_rageval.io.messages import shown_value
from pytest_rageval.model import EvalCase
from pytest_rageval.targets.foreign_results import METHODS, call_of
from pytest_rageval.targets.target import USUAL, BaseTarget, Connection, Surroundings, Target, imported_target

if TYPE_CHECKING:
    from pytest_rageval.config.tables import TargetMapping

GROUP = "rageval.targets"


def target_from_spec(
    spec: str,
    *,
    root: Path,
    reports: Path,
    connection: Connection = USUAL,
    mapping: TargetMapping | None = None,
) -> BaseTarget:
    """Make the target of `spec` in these surroundings; raise SettingsError or CaseError if that fails."""
    name, _, rest = spec.partition(":")
    kind = kind_of(spec)
    target: BaseTarget | None = None
    if kind is not PYTHON:
        module = import_module(f"pytest_rageval.{kind.room}.{kind.module}")
        target = cast("BaseTarget | None", module.from_spec(spec, Surroundings(root, reports, connection, mapping)))
    elif factory := _plugged_in(name):
        made = factory(rest)
        target = target_from_object(made, name=spec, timeout=connection.timeout, max_bytes=connection.max_bytes)
    elif is_target(spec):
        made = imported_target(spec, root)
        target = target_from_object(made, name=spec, timeout=connection.timeout, max_bytes=connection.max_bytes)
    if target is None:
        raise SettingsError(f"unknown target {shown_value(public_unknown(spec))}; targets are spelt {SPELLINGS}")
    return target


def target_from_object(
    obj: object, *, name: str | None = None, timeout: float = 120.0, max_bytes: int = 16 * 2**20
) -> BaseTarget:
    """Return the target for an object: a Target, an HTTP client with a base URL, a function, a chain or an engine."""
    if isinstance(obj, type):
        raise SettingsError(f"{name or 'rag_client'}: is the class {obj.__name__}; give an instance, or a function")
    # First: a Target may be callable, or have a `post`, too.
    if isinstance(obj, Target):
        if not isinstance(obj.name, str):
            raise SettingsError(f"{name or 'rag_client'}: its name is {shown_value(obj.name)}, expected a text")
        # A subclass from outside may return anything, and so is checked like any other object.
        if isinstance(obj, BaseTarget) and type(obj).__module__.startswith("pytest_rageval."):
            return obj
        from pytest_rageval.targets.own_target import OwnTarget  # here, because most targets are ours

        return OwnTarget(obj)
    if hasattr(obj, "post") and hasattr(obj, "base_url"):
        from pytest_rageval.targets.http_target import ClientTarget

        return ClientTarget(obj, name, timeout=timeout, max_bytes=max_bytes)
    if callable(obj) or call_of(obj) is not None:
        from pytest_rageval.targets.callable_target import CallableTarget

        return CallableTarget(obj, name, timeout=timeout, max_bytes=max_bytes)
    kind = type(obj)
    if isinstance(obj, str | int | float | list | dict | None):
        expected = "a Target, an HTTP client with a base URL, or a function from a question to an answer"
        raise SettingsError(f"{name or 'rag_client'}: is {kind.__name__} {shown_value(obj)}, expected {expected}")
    methods = ", ".join(dict.fromkeys(now for _, now in METHODS))
    public = (member for member in dir(obj) if member[0] != "_")
    own = next((member for member in public if inspect.ismethod(getattr(obj, member, None))), "METHOD")
    variable = (name or "x:client").rpartition(":")[2]
    adapter = f"def answer(question): return {{'answer': {variable}.{own}(question)}}"
    raise SettingsError(
        f"{name or 'rag_client'}: is {kind.__module__}.{kind.__name__}, with none of the methods {methods}; "
        f"write a function that calls it: {adapter}"
    )


def check_target(
    target: BaseTarget,
    spec: str,
    cases: Sequence[EvalCase],
    *,
    is_partial_allowed: bool = False,
    others: Sequence[EvalCase] = (),
) -> list[str]:
    """Return why the target of `spec` cannot answer, before any question is sent, one line each; empty if it can.

    One connection to the host of an HTTP target is tried; a file of answers must cover all cases. It may have answers
    to `others`, which are not asked now.
    """
    uncovered = list(target.check_coverage(cases, is_partial_allowed=is_partial_allowed, others=others))
    if uncovered or target.url is None or not kind_of(spec).is_over_http:
        return uncovered
    from pytest_rageval.http.address import probe  # here, because it loads httpx

    problem = probe(target.url)
    return [f"target {problem}; is the system running?"] if problem else []


def _plugged_in(name: str) -> Callable[[str], Target] | None:
    """Return the factory that an installed package registers under this name."""
    for entry in plugged_in(GROUP).select(name=name):
        return cast("Callable[[str], Target]", entry.load())
    return None
