"""The target that a spelling names, or that an overridden `rag_client` fixture returned.

Adapters are imported only where they are chosen: scoring a file of answers never loads an HTTP library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pytest_rageval.config.options import PYTHON, SPELLINGS, kind_of
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.importing import described_exception, import_object, plugged_in
from pytest_rageval.io.masking import public_unknown
from pytest_rageval.io.messages import shown_value
from pytest_rageval.model import EvalCase
from pytest_rageval.targets.target import USUAL, Connection, Target

if TYPE_CHECKING:
    from pytest_rageval.config.tables import TargetMapping

GROUP = "rageval.targets"
_OBJECT = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def target_from_spec(
    spec: str,
    *,
    root: Path,
    reports: Path,
    connection: Connection = USUAL,
    mapping: TargetMapping | None = None,
) -> Target:
    """The target that `spec` spells; SettingsError (or CaseError, for a file of answers) says why there is none.

    root        the project: on `sys.path` for Python targets, and where relative files are looked for
    reports     the folder whose `runs/` holds earlier runs
    connection  how a target behind HTTP is reached; its time limit holds for Python targets too
    mapping     for a URL: what is sent and where the answer stands; None for the native contract
    """
    name, _, rest = spec.partition(":")
    place = _Place(root, reports, connection, mapping)
    if kind_of(spec) is not PYTHON:
        target = _MAKERS[name](spec, rest, place)
    elif factory := _plugged_in(name):
        target = factory(rest)
    else:
        target = _of_python(spec, place)
    if target is None:
        raise SettingsError(f"unknown target {shown_value(public_unknown(spec))}; targets are spelt {SPELLINGS}")
    return target


def target_from_object(
    obj: object, *, name: str | None = None, timeout: float = 120.0, max_bytes: int = 16 * 2**20
) -> Target:
    """The target behind an object: a Target as it is, an HTTP client with a base URL, or a function."""
    if isinstance(obj, type):
        raise SettingsError(f"{name or 'rag_client'}: is the class {obj.__name__}; give an instance, or a function")
    if isinstance(obj, Target):
        return obj
    if hasattr(obj, "post") and hasattr(obj, "base_url"):
        from pytest_rageval.targets.http_targets import ClientTarget

        return ClientTarget(obj, name, timeout=timeout, max_bytes=max_bytes)
    if callable(obj):
        from pytest_rageval.targets.callable_target import CallableTarget

        return CallableTarget(obj, name, timeout=timeout, max_bytes=max_bytes)
    expected = "a Target, an HTTP client with a base URL, or a function from a question to an answer"
    raise SettingsError(f"{name or 'rag_client'}: is {type(obj).__name__} {shown_value(obj)}, expected {expected}")


def check_target(
    target: Target, spec: str, cases: Sequence[EvalCase], *, is_partial_allowed: bool = False
) -> list[str]:
    """Whether the target that `spec` spells can answer at all, before it is asked: why not, one line each, or nothing.

    One connection to the host of an HTTP target is tried; a file of answers must cover all cases.
    """
    check_coverage = getattr(target, "check_coverage", None)
    if check_coverage is not None:
        problems: list[str] = check_coverage(cases, is_partial_allowed=is_partial_allowed)
        return problems
    if kind_of(spec).is_over_http:
        from pytest_rageval.targets.http_targets import probe

        problem = probe(target.url)  # type: ignore[attr-defined] # because what `_over_http` makes has one
        return [f"target {problem}; is the system running?"] if problem else []
    return []


# ── making one of each kind ───────────────────────────────────────────────────────────────────────────────────


class _Place(NamedTuple):
    root: Path
    reports: Path
    connection: Connection
    mapping: TargetMapping | None


def _over_http(spec: str, rest: str, place: _Place) -> Target | None:
    from pytest_rageval.targets.http_targets import target_over_http

    app = _imported(rest, place.root) if spec.startswith("asgi:") and _OBJECT.fullmatch(rest) else None
    return target_over_http(spec, app, place.connection, place.mapping)


def _of_answers(spec: str, rest: str, place: _Place) -> Target | None:
    """Answers at FILE[#SYSTEM]; a file whose name holds `#` is found, too."""
    if not rest:
        return None
    name, hash_sign, system = (rest, "", "") if (place.root / rest).is_file() else rest.rpartition("#")
    if not hash_sign:
        name = rest
    path = place.root / name
    if not path.is_file():
        raise SettingsError(f"target answers:{rest}: there is no file {path}")
    from pytest_rageval.targets.answer_files import AnswersTarget, load_answers

    answers = load_answers(path, system or None, shown_as=name, max_bytes=place.connection.max_bytes)
    return AnswersTarget(answers, spec)


def _of_run(spec: str, rest: str, place: _Place) -> Target | None:
    from pytest_rageval.targets.recorded_target import RecordedTarget

    return RecordedTarget(_run_folder(rest, place.reports), spec) if rest else None


def _of_python(spec: str, place: _Place) -> Target | None:
    if not _OBJECT.fullmatch(spec):
        return None
    connection = place.connection
    made = _imported(spec, place.root)
    return target_from_object(made, name=spec, timeout=connection.timeout, max_bytes=connection.max_bytes)


_MAKERS: Mapping[str, Callable[[str, str, _Place], Target | None]] = {
    **dict.fromkeys(("demo", "http", "https", "openai", "ollama", "asgi"), _over_http),
    "answers": _of_answers,
    "run": _of_run,
}
"""What makes the targets of each kind, by what stands before the colon; the kinds are in `config/options.py`."""


# ── finding things ────────────────────────────────────────────────────────────────────────────────────────────


def _imported(place: str, root: Path) -> Any:
    """The object at `package.module:name`; SettingsError in one line if there is none."""
    module, _, attributes = place.partition(":")
    try:
        return import_object(f"target {place}", module, attributes, root)
    except ModuleNotFoundError as error:
        raise SettingsError(f"target {place}: {module} cannot be imported: {described_exception(error)}") from None


def _run_folder(run_id: str, reports: Path) -> Path:
    runs = reports / "runs"
    if not _RUN_ID.fullmatch(run_id):
        raise SettingsError(
            f"target run:{shown_value(run_id)[1:-1]}: that is not the id of a run, as in 20251218_063617"
        )
    if not (runs / run_id).is_dir():
        raise SettingsError(f"target run:{run_id}: there is no such run in {runs}")
    return runs / run_id


def _plugged_in(name: str) -> Callable[[str], Target] | None:
    """The factory that an installed package registers under this name."""
    for entry in plugged_in(GROUP).select(name=name):
        return cast("Callable[[str], Target]", entry.load())
    return None
