"""Judges from written specs (`lexical`, `openai:MODEL`, `module:object`) or a fixture's object."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import JudgeUnavailable, ModelUnavailable, SettingsError
from pytest_rageval.http.call_limit import Limits
from pytest_rageval.io.importing import import_object, plugged_in
from pytest_rageval.io.masking import Mask, public_target, public_unknown
from pytest_rageval.io.messages import shown_value
from pytest_rageval.judges.cache.cached_judge import CachedJudge
from pytest_rageval.judges.checked_judge import CheckedJudge, TimeLimit
from pytest_rageval.judges.judge import BaseJudge, Judge, JudgementCache, JudgeSpec
from pytest_rageval.judges.own_judge import OwnJudge
from pytest_rageval.providers import JUDGING
from pytest_rageval.text import excerpt, printable

if TYPE_CHECKING:
    from pytest_rageval.llm.endpoint_options import EndpointOptions

GROUP = "rageval.judges"
"""Entry points: `NAME = "package:factory"` makes the spec `NAME:REST` call `factory(REST)`."""


class JudgeKind(NamedTuple):
    """A kind of judge.

    forms        formats of its specs
    factory      `module:function` in this package, imported when needed; it takes a JudgeSpec
    asks_server  True if judging may cost money and needs a network
    opens_files  True if a spec may name files of this machine
    """

    forms: tuple[str, ...]
    factory: str
    asks_server: bool = True
    opens_files: bool = False


KINDS: Mapping[str, JudgeKind] = {
    "lexical": JudgeKind(("lexical",), "lexical_judge:lexical_judge", asks_server=False),
    "none": JudgeKind(("none",), "", asks_server=False),
    "stub": JudgeKind(("stub:SCORE",), "plain_judge:stub_judge", asks_server=False),
    **{kind: JudgeKind(row.spellings, "model_judge:model_judge") for kind, row in JUDGING.items()},
    "embedding": JudgeKind(("embedding:MODEL@URL",), "embedding_judge:embedding_judge"),
    "nli": JudgeKind(("nli:FOLDER", "nli:OWNER/NAME"), "nli_judge:nli_judge", asks_server=False, opens_files=True),
    "deepeval": JudgeKind(("deepeval:METRIC@JUDGE",), "deepeval_judge:deepeval_judge"),
}
"""All judges of this package by the first word of their specs; `none` judges nothing."""
WITHOUT_REST = frozenset({"lexical", "none"})
"""Kinds whose name is the whole spec."""

_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_MODEL = re.compile(r"\w[\w.+:/-]*\w")


def asks_server(spec: str) -> bool:
    """Return True if judging by this spec may cost money; always for judges from outside this package."""
    kind = KINDS.get(spec.partition(":")[0])
    return kind is None or kind.asks_server


def judge_of_run(settings: Settings, root: Path, workers: int) -> BaseJudge | None:
    """Create the configured judge, with a worker's share of the limits and the budget."""
    if settings.judge in WITHOUT_REST:
        settings.resolved_judge_headers()  # reports invalid headers even for judges without a server
        return judge_from_spec(settings.judge)
    return judge_from_spec(settings.judge, root=root, options=_endpoint(settings, 1 / workers))


def _endpoint(settings: Settings, share: float) -> EndpointOptions:
    """Return the options of a judge's server, with a share of the limits and of the configured budget."""
    from pytest_rageval.llm.endpoint_options import Budget, EndpointOptions  # the default judge has no endpoint

    options = settings.judge_options
    return EndpointOptions(
        base_url=settings.judge_base_url,
        temperature=settings.judge_temperature,
        timeout=settings.timeout,
        retries=settings.retries,
        concurrency=settings.judge_concurrency,
        requests_per_minute=settings.judge_requests_per_minute,
        tokens_per_minute=settings.judge_tokens_per_minute,
        is_adaptive=settings.adaptive_concurrency,
        patience=settings.rate_limit_patience,
        share=share,
        budget=None if settings.max_cost is None else Budget(settings.max_cost * share),
        is_replay=settings.judge_cache == "replay",
        max_tokens=options.max_tokens,
        reasoning_effort=options.reasoning_effort,
        headers=settings.resolved_judge_headers(),
        extra_body=options.extra_body,
        omit=options.omit,
        server_name=settings.judge_name,
        api=options.api,
        api_version=options.api_version,
        is_joint=settings.judge_requests == "together",
    )


def judge_from_spec(spec: str, *, root: Path | None = None, options: EndpointOptions | None = None) -> BaseJudge | None:
    """Create the judge that a spec names, or None for `none`; raise SettingsError for an unknown spec.

    `package.module:object` is a judge, or a class or function without arguments that returns one; `root` is put on the
    import path for it. `options` go to judges with a server. Any other name is a model at the URL in `options`.
    """
    spec = spec.strip()
    name, colon, rest = spec.partition(":")
    if name in KINDS:
        has_rest = bool(colon)
        needs_rest = name not in WITHOUT_REST
        # Without its score, `stub` is told what a score is, which says more than its form.
        if has_rest == needs_rest or name == "stub":
            return _built_in(JudgeSpec(name, rest, root, options))
        if needs_rest and KINDS[name].forms:
            forms = " or ".join(KINDS[name].forms)
            raise SettingsError(f"judge {spec!r} lacks what follows its kind; write it as {forms}")
    # After our own kinds, so that no package can take their names.
    for entry in plugged_in(GROUP):
        if entry.name == name:
            place = f"judge {public_target(spec)!r}: entry point {entry.value!r}"
            return _checked(spec, _create(place, lambda: entry.load()(rest)))  # noqa: B023  called at once
    if colon and _DOTTED.fullmatch(name) and _DOTTED.fullmatch(rest):
        with suppress(ModuleNotFoundError):
            place = f"judge {public_target(spec)!r}"
            value = import_object(place, name, rest, root)
            if inspect.isclass(value) or inspect.isroutine(value):
                value = _create(place, value)
            return _checked(spec, value)
    if _MODEL.fullmatch(spec) is None or options is None or options.base_url is None:
        raise _unknown(spec)
    return _built_in(JudgeSpec("openai", spec, root, options))


def _built_in(spec: JudgeSpec) -> BaseJudge | None:
    """Create a judge of this package; raise SettingsError with the spec in front of each problem."""
    module, _, function = KINDS[spec.kind].factory.partition(":")
    if not module:
        return None
    try:
        judge: BaseJudge = getattr(import_module(f"pytest_rageval.judges.{module}"), function)(spec)
    except SettingsError as error:
        shown = repr(printable(public_target(f"{spec.kind}:{spec.rest}")))
        kind_of_error = JudgeUnavailable if isinstance(error, ModelUnavailable) else SettingsError
        raise kind_of_error(*(f"judge {shown}: {problem}" for problem in error.problems)) from None
    return judge


def judge_from_object(candidate: object) -> BaseJudge | None:
    """Return a fixture's judge: ours unchanged, any other one and a plain object in an adapter, or None."""
    if candidate is None:
        return None
    if isinstance(candidate, Judge) and not inspect.isclass(candidate):
        _check_parts(candidate)
        # A subclass of the project's own is foreign code: its calls need a limit.
        if isinstance(candidate, BaseJudge) and type(candidate).__module__.startswith("pytest_rageval."):
            return candidate
        return OwnJudge(candidate)
    if not inspect.isclass(candidate):
        from pytest_rageval.judges.plain_judge import METHODS, PlainJudge

        if any(callable(getattr(candidate, method, None)) for method in METHODS.values()):
            return PlainJudge(candidate)
        given = excerpt(f"{type(candidate).__qualname__} {candidate!r}", 120)
        lacking = ""
        if hasattr(candidate, "judge"):
            names = [name for name in ("model", "heuristic", "rubrics", "aclose") if not hasattr(candidate, name)]
            lacking = f"; it has judge but lacks {', '.join(names)}"
    else:
        given = f"the class {candidate.__qualname__}, not an instance of it"
        lacking = ""
    raise SettingsError(f"rag_judge gives {given}; {_WANTED}{lacking}")


def _check_parts(judge: Judge) -> None:
    """Raise SettingsError for a part of a judge that later readers count on and that is of another type."""
    if not isinstance(judge.model, str):
        raise SettingsError(f"rag_judge: its model is {shown_value(judge.model)}, expected a text")
    if not isinstance(judge.heuristic, bool):
        raise SettingsError(f"rag_judge: its heuristic is {shown_value(judge.heuristic)}, expected True or False")
    rubrics: object = judge.rubrics
    if not isinstance(rubrics, frozenset | set) or not all(isinstance(name, str) for name in rubrics):
        raise SettingsError(f"rag_judge: its rubrics are {shown_value(rubrics)}, expected a frozenset of names")


_WANTED = (
    "expected a Judge (model, heuristic, rubrics, judge, aclose), an object with coroutines "
    "score_groundedness(answer, context) and score_relevance(answer, question), or None"
)


def _create(place: str, make: Callable[[], object]) -> object:
    """Call a factory from outside this package; convert any exception to a SettingsError of one line."""
    try:
        return make()
    except SettingsError:
        raise
    except Exception as error:
        message = f"{type(error).__name__}: {excerpt(str(error))}"
        raise SettingsError(f"{place} cannot be loaded: {message}") from error


def _checked(spec: str, made: object) -> BaseJudge | None:
    try:
        return judge_from_object(made)
    except SettingsError as error:
        raise SettingsError(str(error).replace("rag_judge", f"judge {public_target(spec)!r}", 1)) from None


def _unknown(spec: str) -> SettingsError:
    forms = list(chain.from_iterable(kind.forms for kind in KINDS.values()))
    forms += sorted(f"{point.name}:…" for point in plugged_in(GROUP))
    forms.append("package.module:object")
    remedy = "; if it is a model, say where with --rageval-judge-base-url" if _MODEL.fullmatch(spec) else ""
    return SettingsError(f"unknown judge {printable(public_unknown(spec))!r}{remedy}; known: {', '.join(forms)}")


def judge_with_cache(judge: BaseJudge, cache: JudgementCache | None, settings: Settings, mask: Mask) -> CheckedJudge:
    """Return the judge as it is asked: checked, and behind the cache unless it is local and so has no use for one.

    A judge from outside this package gets a time limit.
    """
    limit = None
    if judge.is_foreign:
        calls = Limits(
            settings.judge_concurrency, is_adaptive=settings.adaptive_concurrency, patience=settings.rate_limit_patience
        )
        limit = TimeLimit(settings.longest_call, settings.longest_call_in_words, calls)
    if cache is None or judge.is_local or settings.judge_cache == "off":
        return CheckedJudge(judge, mask, limit)
    return CachedJudge(judge, cache, settings.judge_cache, mask, limit)
