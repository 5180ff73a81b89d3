"""The judge that a written spec (`lexical`, `openai:MODEL`, `module:object`) or a fixture's object means."""

from __future__ import annotations

import inspect
import re
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.importing import import_object, plugged_in
from pytest_rageval.io.masking import public_unknown
from pytest_rageval.judges.judge import Judge
from pytest_rageval.text import excerpt, printable

if TYPE_CHECKING:
    from pytest_rageval.llm.endpoint_options import EndpointOptions

GROUP = "rageval.judges"
"""Entry points: `NAME = "package:factory"` makes the spec `NAME:REST` call `factory(REST)`."""

WITHOUT_SERVER = frozenset({"lexical", "none"})
"""Specs of judges that ask no server, whatever is installed."""

_SPELLINGS = (
    "lexical", "none", "stub:SCORE", "openai:MODEL", "openai:MODEL@URL", "http://HOST", "anthropic:MODEL",
    "any-llm:PROVIDER/MODEL", "embedding:MODEL@URL", "nli:FOLDER", "nli:OWNER/NAME", "deepeval:METRIC@JUDGE",
)  # fmt: skip
_SERVED = frozenset({"openai", "anthropic", "any-llm", "embedding", "deepeval", "http", "https"})
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_MODEL = re.compile(r"\w[\w.+:/-]*\w")


def judge_from_spec(spec: str, *, root: Path | None = None, options: EndpointOptions | None = None) -> Judge | None:
    """The judge that a spec names; None for `none`. Anything that names no judge is a SettingsError.

    `package.module:object` is a judge, or a class or function without arguments that gives one; `root` is put on the
    import path for it. What `options` say goes to judges that ask a server. A name that is nothing else is a model at
    their URL.
    """
    spec = spec.strip()
    name, colon, rest = spec.partition(":")
    if name == "none" and not colon:
        return None
    if name == "lexical" and not colon:
        from pytest_rageval.judges.lexical.lexical_judge import LexicalJudge

        return LexicalJudge()
    if name == "stub":
        return _stub(spec, rest)
    for entry_point in plugged_in(GROUP):
        if entry_point.name == name:
            return _from_entry_point(spec, entry_point, rest)
    if name == "nli" and colon:
        from pytest_rageval.judges.nli.nli_judge import nli_judge

        return nli_judge(rest, root)
    if name in _SERVED and colon:
        from pytest_rageval.judges.served_judge import served_judge

        return served_judge(name, rest, options)
    if colon and _DOTTED.fullmatch(name) and _DOTTED.fullmatch(rest):
        candidate = _from_dotted_path(spec, name, rest, root)
        if candidate is not _NO_MODULE:
            return _checked(spec, candidate)
    if _MODEL.fullmatch(spec) is None or options is None or options.base_url is None:
        raise _unknown(spec)
    from pytest_rageval.judges.served_judge import served_judge

    return served_judge("openai", spec, options)


_NO_MODULE = object()


def judge_from_object(candidate: object) -> Judge | None:
    """The judge that a fixture gives: a Judge as it is, a plain object through an adapter, None for none."""
    if candidate is None or (isinstance(candidate, Judge) and not inspect.isclass(candidate)):
        return candidate
    if not inspect.isclass(candidate):
        from pytest_rageval.judges.plain_judge import METHODS, PlainJudge

        if any(callable(getattr(candidate, method, None)) for method in METHODS.values()):
            return PlainJudge(candidate)
    raise SettingsError(f"rag_judge gives {_described(candidate)}; {_WANTED}{_lacking(candidate)}")


_WANTED = (
    "expected a Judge (model, heuristic, rubrics, judge, aclose), an object with coroutines "
    "score_groundedness(answer, context) and score_relevance(answer, question), or None"
)


def _lacking(candidate: object) -> str:
    if not hasattr(candidate, "judge") or inspect.isclass(candidate):
        return ""
    lacking = [name for name in ("model", "heuristic", "rubrics", "aclose") if not hasattr(candidate, name)]
    return f"; it has judge but lacks {', '.join(lacking)}" if lacking else ""


def _described(candidate: object) -> str:
    if inspect.isclass(candidate):
        return f"the class {candidate.__qualname__}, not an instance of it"
    return excerpt(f"{type(candidate).__qualname__} {candidate!r}", 120)


def _stub(spec: str, written: str) -> Judge:
    from pytest_rageval.judges.stub import STUB_SCORE, StubJudge

    try:
        score = float(written)
    except ValueError:
        raise SettingsError(f"judge {spec!r}: {STUB_SCORE}") from None
    return StubJudge(score)


def _from_entry_point(spec: str, entry_point: EntryPoint, rest: str) -> Judge | None:
    try:
        made = entry_point.load()(rest)
    except SettingsError:
        raise
    except Exception as error:  # another package's code may raise anything; the user gets one line
        raise SettingsError(f"judge {spec!r}: entry point {entry_point.value!r} {_failed(error)}") from error
    return _checked(spec, made)


def _from_dotted_path(spec: str, module: str, name: str, root: Path | None) -> object:
    """What the path leads to, whatever that is; `_NO_MODULE` where there is no such module."""
    try:
        value = import_object(f"judge {spec!r}", module, name, root)
    except ModuleNotFoundError:
        return _NO_MODULE
    try:
        return value() if inspect.isclass(value) or inspect.isroutine(value) else value
    except SettingsError:
        raise
    except Exception as error:  # a user's own class or function may raise anything; the user gets one line
        raise SettingsError(f"judge {spec!r} {_failed(error)}") from error


def _checked(spec: str, made: object) -> Judge | None:
    try:
        return judge_from_object(made)
    except SettingsError as error:
        raise SettingsError(str(error).replace("rag_judge", f"judge {spec!r}", 1)) from None


def _failed(error: Exception) -> str:
    return f"cannot be loaded: {type(error).__name__}: {excerpt(str(error))}"


def _unknown(spec: str) -> SettingsError:
    spellings = [
        *_SPELLINGS,
        *sorted(f"{point.name}:…" for point in plugged_in(GROUP)),
        "package.module:object",
    ]
    model = "; if it is a model, say where with --rageval-judge-base-url" if _MODEL.fullmatch(spec) else ""
    return SettingsError(f"unknown judge {printable(public_unknown(spec))!r}{model}; known: {', '.join(spellings)}")
