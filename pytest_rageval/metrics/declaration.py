"""What the declaration of a metric must be: checked when the metric is registered, one line a problem."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.messages import shown_value

_BARE_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LONGEST_NAME = 100
LARGEST = 1e15
"""The largest limit of a scale: up to here sums over a run stay exact enough, and finite."""


def check_declaration(metric: Any, layers: Collection[str]) -> None:
    """Raise SettingsError for what is wrong with the declaration of a metric: its name, the key and the value.

    `metric` has the attributes of a `Metric`, whatever their values are.
    """
    if not isinstance(metric.name, str) or not _BARE_NAME.fullmatch(metric.name[:_LONGEST_NAME]):
        name = shown_value(metric.name)
        raise SettingsError(
            f"metric {name}: a name is lower-case letters, digits and underscores; give one with @metric(name=…)"
        )
    problems = [*_wrong_parts(metric, layers), *_wrong_function(metric)]
    if problems:
        raise SettingsError(*(f"metric {metric.name!r}: {problem}" for problem in problems))


def _wrong_parts(metric: Any, layers: Collection[str]) -> Iterator[str]:
    for key, (is_right, expected) in _PARTS.items():
        value = getattr(metric, key)
        if not is_right(value):
            yield f"{key} is {shown_value(value)}, expected {expected}"
    if not isinstance(metric.layer, str) or metric.layer not in layers:
        yield f"layer is {shown_value(metric.layer)}, expected one of {', '.join(layers)}"


def _wrong_function(metric: Any) -> Iterator[str]:
    function: Any = metric.function
    if not callable(function):
        yield f"{shown_value(function)} is no function"
        return
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        yield "is async or a generator; write a plain function that returns the score"
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions in C have none
        yield "has no signature that can be read; wrap it in a function of an observation"
        return
    keyword_only = [name for name, each in signature.parameters.items() if each.kind is each.KEYWORD_ONLY]
    options = dict.fromkeys(keyword_only)  # each of them may come from the configuration
    cut_off: list[int] = []
    if "k" in signature.parameters and "k" not in options:
        cut_off = [1]
    try:
        # Found here, once, in place of the same TypeError in each case of a run.
        signature.bind(None, *cut_off, **options)
    except TypeError as error:
        what = "the facts of a run" if metric.run_level else "an observation"
        yield f"cannot be called with {what} alone: {error}"
    if "k" in options and not metric.run_level:
        yield "takes k by its name alone; write it as the second parameter"


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _is_better(value: object) -> bool:
    return isinstance(value, str) and value in ("higher", "lower")


def _is_scale(value: object) -> bool:
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    if not all(isinstance(limit, float) and abs(limit) <= LARGEST for limit in value):  # false for NaN
        return False
    low, high = value
    return bool(low < high)


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_truth(value: object) -> bool:
    return isinstance(value, bool)


UNITS = ("ms", "tokens", "US dollars", "requests")


def _is_unit_or_none(value: object) -> bool:
    return value is None or value in UNITS


def _is_function_or_none(value: object) -> bool:
    return value is None or callable(value)


def _are_options(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


_PARTS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "better": (_is_better, "'higher' or 'lower'"),
    "scale": (_is_scale, f"two numbers up to {LARGEST:g}, the lower one first"),
    "unit": (_is_unit_or_none, f"one of {', '.join(UNITS)}"),
    "needs": (_are_texts, "a list of texts"),
    "gates": (_are_texts, "a list of texts"),
    "aliases": (_are_texts, "a list of texts"),
    "yields_to": (_is_text_or_none, "the name of a metric"),
    "aggregate": (_is_text_or_none, "a name"),
    "binary": (_is_truth, "True or False"),
    "on_by_default": (_is_truth, "True or False"),
    "run_level": (_is_truth, "True or False"),
    "of_metric": (_is_truth, "True or False"),
    "missing": (_is_function_or_none, "a function"),
    "terms": (_is_function_or_none, "a function"),
    "description": (_is_text, "a text"),
    "options": (_are_options, "a mapping of options"),
}
"""The keys of a declaration, each with its check and what is expected."""
