"""What a run is told: options over environment over `[tool.rageval]` over defaults, as one frozen value."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from pytest_rageval.config.files import DEFAULT_CASES, read_table
from pytest_rageval.config.options import OPTIONS, Option
from pytest_rageval.config.tables import (
    Abstention,
    Frozen,
    Gates,
    JudgeOptions,
    OneOrMore,
    Origin,
    Positive,
    Regression,
    TargetMapping,
    Versions,
    Weight,
)
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.environment_secrets import SENT_FROM_ENVIRONMENT, secrets_of_environment
from pytest_rageval.io.expected import Expects
from pytest_rageval.io.flaws import Flaw, flaws_of
from pytest_rageval.io.masking import (
    public_target,
    secrets_of_headers,
    secrets_of_params,
    secrets_of_target,
)
from pytest_rageval.io.messages import found, kind_in_words, shown_value, spelled
from pytest_rageval.io.suggestions import did_you_mean

RESERVED_PARAMS = {"question": "it is the case's", "history": "it is the case's", "vaults": "it is the case's",
                   "folders": "it is the case's", "k": "set k", "folder_mode": "set folder_mode",
                   "rerank_vector_weight": "set rerank_vector_weight",
                   "rerank_lexical_weight": "set rerank_lexical_weight"}  # fmt: skip
REFERENCES = ("latest", "baseline")
"""Names that mean a run wherever one is named, and so cannot be a run's own."""
ENVIRONMENT = {"RAGEVAL_TARGET": "target", "RAGEVAL_JUDGE": "judge", "RAGEVAL_REPORTS": "reports"}
_REGRESSION = 'a table such as { metric = "mrr", max_drop = 0.05 }'


class Settings(Frozen):
    """Everything a run is told. Field names are the keys of `[tool.rageval]`; see docs/configuration.md."""

    target: Annotated[str, Expects('a target, as in "http://localhost:8080"')] | None = None
    mapping: TargetMapping | None = None
    """Of the table's `target`; None where the target is no URL."""
    judge: str = "lexical"
    judge_base_url: str | None = None
    judge_temperature: float = Field(0.0, ge=0, le=2, allow_inf_nan=False)
    judge_repeats: int = Field(1, ge=1, le=99)
    """How often each rubric is put to the judge; the median counts."""
    judge_concurrency: int = Field(8, ge=1, le=1000)
    judge_requests_per_minute: Positive | None = None
    judge_tokens_per_minute: Positive | None = None
    judge_options: JudgeOptions = JudgeOptions()
    judge_name: str | None = Field(None, min_length=1, max_length=200)
    """What the judge's server is called, in place of host and path: who shares a cache gives it the same name."""
    judge_cache: Literal["use", "refresh", "off", "replay"] = "use"
    max_cost: Weight | None = None
    """US dollars after which no new judgement is asked for."""
    rubrics: str | None = None
    """Folder of rubric files of the project's own, relative to the root directory."""
    reports: str = "reports"
    notes: str | None = None
    """Folder of the notes that the system answers from, relative to the root directory: for labelling and the audit."""
    cases: Annotated[tuple[str, ...], Expects('a list of globs, as in ["evalcases/**/*.jsonl"]')] = DEFAULT_CASES
    k: int = Field(5, ge=1, le=10_000)
    folder_mode: Literal["off", "on", "on_with_fallback"] | None = None
    rerank_vector_weight: Weight | None = None
    rerank_lexical_weight: Weight | None = None
    params: Mapping[str, Any] = Field(default_factory=dict)
    versions: Versions = Versions()
    """What the project says of its system; where that reports a version, the reported one counts."""
    origin: Origin | None = None
    headers: Mapping[str, str] = Field(default_factory=dict)
    timeout: Positive = 120.0
    retries: int = Field(2, ge=0, le=20)
    concurrency: int = Field(16, ge=1, le=1000)
    look_ahead: int | None = Field(None, ge=1)
    max_line_bytes: int = Field(4 * 2**20, ge=1024)
    max_response_bytes: int = Field(16 * 2**20, ge=1024)
    known_failures: Literal["fail", "ratchet", "report"] = "fail"
    gold_by: Literal["anchors", "ids"] = "anchors"
    save_traces: bool = True
    report: bool = True
    report_json: bool = True
    """Are report.html and report.json written at the end of a run?"""
    enabled: Annotated[tuple[str, ...], Expects('a list of metrics and layers, as in ["retrieval", "mrr"]')] | None = (
        None
    )
    skipped: tuple[str, ...] = ()
    """Layers that are not scored, by code or title."""
    ontology: Annotated[OneOrMore, Expects("a path or a list of paths")] | None = None
    """One TOML or JSON file, or the `.ttl` files of RDF with SHACL shapes, relative to the root directory."""
    metric_options: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    gates: Gates = Gates()
    gate: tuple[str, ...] = ()
    """Gates of the command line: they replace the table's gates of the same metric."""
    abstention: Abstention = Abstention()
    regression: Annotated[
        tuple[Annotated[Regression | str, Expects(_REGRESSION)], ...], Expects(f"a list, each of them {_REGRESSION}")
    ] = ()
    tolerated: tuple[str, ...] = ()
    """Regression gates of the command line: they replace those of the same metric."""
    weights: Mapping[str, Weight] = Field(default_factory=dict)
    baseline: str | None = None
    update_baseline: bool = False
    force: bool = False
    allow_regressions: bool = False
    ignore_invariants: bool = False
    retrieval_only: bool = False
    allow_partial: bool = False
    repeat: int = Field(1, ge=1, le=1000)
    shard: str | None = None
    resume: str | None = None
    run_id: str | None = None
    description: str | None = None
    store_full_text: bool = False
    redact: bool = False
    dry_run: bool = False

    @property
    def ask_params(self) -> dict[str, Any]:
        """What goes out with every question beside the question: only what was set."""
        named = {name: getattr(self, name) for name in
                 ("folder_mode", "rerank_vector_weight", "rerank_lexical_weight")}  # fmt: skip
        return {name: value for name, value in named.items() if value is not None} | dict(self.params)

    def resolved_headers(self, environment: Mapping[str, str] | None = None) -> dict[str, str]:
        """Headers with `env:NAME` replaced by what the environment holds; a SettingsError where it does not."""
        return _resolved("headers", self.headers, os.environ if environment is None else environment)

    def resolved_judge_headers(self, environment: Mapping[str, str] | None = None) -> dict[str, str]:
        """The headers of `judge_options`, in the same way."""
        environment = os.environ if environment is None else environment
        return _resolved("judge_options.headers", self.judge_options.headers, environment)

    def secrets(self, environment: Mapping[str, str] | None = None) -> Iterator[str]:
        """All credentials that this run sends or may hear of: of headers, URLs, parameters and the environment."""
        variables = os.environ if environment is None else environment
        yield from secrets_of_environment(variables)
        for name, value in (*self.headers.items(), *self.judge_options.headers.items()):
            if value.startswith("env:"):
                yield from secrets_of_headers({"authorization": variables.get(value.removeprefix("env:"), "")})
            else:
                yield from secrets_of_headers({name: value})
        for written in (self.target, self.judge, self.judge_base_url):
            yield from secrets_of_target(written or "")
        yield from secrets_of_params(self.params)
        yield from secrets_of_params(self.judge_options.extra_body)
        yield from secrets_of_params(self.mapping.request if self.mapping else {})

    @property
    def longest_call(self) -> float:
        """Seconds that a case may take to be asked, whatever asks: all attempts, and some to wait between them."""
        return self.timeout * (self.retries + 1) + 10

    @property
    def longest_call_in_words(self) -> str:
        """The same as messages name it, by the settings behind it."""
        return f"{self.longest_call:.6g} s (timeout × (retries + 1) + 10 s)"

    @property
    def window(self) -> int:
        """How many cases may be asked before they are needed; four times what is in flight unless set."""
        return self.look_ahead or 4 * self.concurrency


def _resolved(table: str, headers: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    problems = [
        f"{table}.{name}: the environment variable {value.removeprefix('env:')} is not set"
        for name, value in headers.items()
        if value.startswith("env:") and value.removeprefix("env:") not in variables
    ]
    if problems:
        raise SettingsError(*problems)
    return {
        name: variables[value.removeprefix("env:")] if value.startswith("env:") else value
        for name, value in headers.items()
    }


def load_settings(
    root: Path,
    options: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Settings of the project at `root`; `options` by name of Settings field, absent or None where not given.

    Raises SettingsError with every problem found, one line each.
    """
    place, table = read_table(root)
    values, problems = _from_table(place, table)
    for variable, name in ENVIRONMENT.items():
        if value := (os.environ if environment is None else environment).get(variable):
            values[name] = value
    by_field = {option.field: option for option in OPTIONS}
    for name, value in (options or {}).items():
        if value is not None:
            values[name] = _from_option(by_field[name], value, values, problems)
    try:
        settings = Settings.model_validate(values)
    except ValidationError as invalid:
        flaws = flaws_of(invalid, values, Settings, _shown)
        problems += [_said(flaw, place, by_field, options or {}) for flaw in flaws]
        raise SettingsError(*problems) from None
    problems += list(_contradictions(settings, place))
    problems += list(_meaningless_variables(settings, os.environ if environment is None else environment))
    if problems:
        raise SettingsError(*problems)
    # Another target may be tried from the command line while the table describes an API.
    return settings if _is_url(settings.target) else settings.model_copy(update={"mapping": None})


TABLE_ONLY_AS_OPTION = {"update_baseline", "force", "run_id", "dry_run", "gate", "tolerated", "enabled", "skipped",
                        "metric_options", "retrieval_only", "description", "mapping", "shard", "resume"}  # fmt: skip


def _from_table(place: str, table: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The table as fields of Settings, and what is wrong with its keys."""
    told: dict[str, Any] = {}
    problems: list[str] = []
    known = [name for name in Settings.model_fields if name not in TABLE_ONLY_AS_OPTION] + ["metrics"]
    for key, value in table.items():
        if key not in known:
            problems.append(f"{place}: {key} is not a known key{_nearest(key, known)}")
        elif key == "metrics":
            if not isinstance(value, dict):
                problems.append(f"{place}: metrics is {found(value)}, expected a table, as in [tool.rageval.metrics]")
                continue
            enabled = value.get("enabled")
            told["enabled"] = tuple(enabled) if isinstance(enabled, list) else enabled
            told["metric_options"] = {name: options for name, options in value.items() if name != "enabled"}
        elif key == "target" and isinstance(value, dict):
            told |= _target_table(place, value, problems)
        else:
            has_lists = key in ("gates", "abstention") and isinstance(value, dict)
            told[key] = {name: tuples_of(one) for name, one in value.items()} if has_lists else tuples_of(value)
    return told, problems


def _target_table(place: str, table: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """The target as a table of `url` and `mapping`, as fields of Settings; the URL may come from elsewhere."""
    fields = {"url": "target", "mapping": "mapping"}
    problems += [
        f"{place}: target.{key} is not a known key{_nearest(key, list(fields))}" for key in table if key not in fields
    ]
    url = table.get("url")
    if url is not None and not (isinstance(url, str) and _is_url(url)):
        problems.append(f"{place}: target.url is {found(_public(url))}, expected a URL, as in 'http://localhost:8080'")
        return {}
    return {field: table[key] for key, field in fields.items() if key in table}


def _is_url(target: str | None) -> bool:
    return target is not None and target.startswith(("http:", "https:"))


def tuples_of(value: Any) -> Any:
    """TOML arrays as tuples where Settings holds tuples; tables below are handled by their own models."""
    if isinstance(value, list):
        return tuple(tuples_of(item) for item in value)
    return value


def _from_option(option: Option, value: Any, values: dict[str, Any], problems: list[str]) -> Any:
    """An option's text as the setting it stands for."""
    if option.name == "param":
        return dict(values.get("params", {})) | dict(_pairs(value, problems))
    if option.name == "version":
        table = values.get("versions", {})
        return (dict(table) if isinstance(table, Mapping) else {}) | dict(_stated_versions(value, problems))
    if option.name in ("metrics", "skip"):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    if option.kind == "many":
        return tuple(value)
    if option.kind in ("whole", "number") and isinstance(value, str):
        try:
            return int(value) if option.kind == "whole" else float(value)
        except ValueError:
            return value
    return value


def _pairs(written: Sequence[str], problems: list[str]) -> Iterator[tuple[str, Any]]:
    for pair in written:
        name, equals, text = pair.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][\w.-]*", name.strip()):
            problems.append(f"--rageval-param: {pair!r} is not NAME=VALUE, as in min_score=0.3")
            continue
        try:
            value = json.loads(text, parse_constant=lambda constant: constant)
        except ValueError:
            value = text
        yield name.strip(), value


def _stated_versions(written: Sequence[str], problems: list[str]) -> Iterator[tuple[str, str]]:
    names = list(Versions.model_fields)
    for pair in written:
        name, equals, version = (part.strip() for part in pair.partition("="))
        if name not in names:
            problems.append(f"--rageval-version: {name!r} is not a known name{_nearest(name, names)}")
        elif not equals or not version:
            problems.append(f"--rageval-version: {pair!r} is not NAME=VALUE, as in llm=llama3.2")
        else:
            yield name, version


def _contradictions(settings: Settings, place: str) -> Iterator[str]:
    for name in settings.params:
        if name in RESERVED_PARAMS:
            yield f"{place}: params.{name} cannot be set: {RESERVED_PARAMS[name]}"
    if settings.mapping is not None and settings.mapping.path[:1] not in ("", "/"):
        yield f"{place}: target.mapping.path is {shown_value(settings.mapping.path)}, expected one that begins with '/'"
    if settings.mapping is not None and re.search(r"[?#\s]", settings.mapping.path):
        yield f"{place}: target.mapping.path is a path alone; write a query into target.url, where it is kept"
    if settings.shard is not None and not _is_shard(settings.shard):
        yield f"--rageval-shard: {settings.shard!r} is not I/N with I from 1 to N, as in 1/4"
    if settings.resume is not None and settings.run_id is not None:
        yield "--rageval-resume: the run has its name already; leave --rageval-run-id out"
    if settings.force and not settings.update_baseline:
        yield "--rageval-force: nothing to force; it goes with --rageval-update-baseline"
    if settings.run_id is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", settings.run_id):
        yield f"--rageval-run-id: {settings.run_id!r} is not a folder name; use letters, digits, '.', '_' and '-'"
    if settings.run_id in REFERENCES:
        yield f"--rageval-run-id: {settings.run_id!r} stands for another run wherever one is named; choose another"
    if not settings.cases:
        yield f"{place}: cases is empty, so that no case would be run; leave it out for the usual places, or name some"
    named = [gate.metric if isinstance(gate, Regression) else gate.split()[0] for gate in settings.regression if gate]
    for metric in sorted({metric for metric in named if named.count(metric) > 1}):
        yield f"{place}: regression has {named.count(metric)} entries for {metric!r}, of which one would count"
    for number, gate in enumerate(settings.regression):
        if isinstance(gate, Regression) and (gate.max_drop is None) == (gate.max_rise is None):
            yield f"{place}: regression[{number}] needs one of max_drop and max_rise"


def _meaningless_variables(settings: Settings, environment: Mapping[str, str]) -> Iterator[str]:
    """Variables that look like ours and are nobody's: a misspelt one would leave another system to be asked."""
    headers = (*settings.headers.values(), *settings.judge_options.headers.values())
    used = {value.removeprefix("env:") for value in headers if value.startswith("env:")}
    ours = (*ENVIRONMENT, *(name for name in SENT_FROM_ENVIRONMENT if name.startswith("RAGEVAL_")))
    for variable in sorted(environment):
        if variable.startswith("RAGEVAL_") and variable not in used and variable not in ours:
            remedy = did_you_mean(variable, ours, f"; variables: {', '.join(ours)}")
            yield f"environment variable {variable} means nothing{remedy}"


def _is_shard(written: str) -> bool:
    parts = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", written)
    return parts is not None and 1 <= int(parts[1]) <= int(parts[2])


def _said(flaw: Flaw, place: str, by_field: Mapping[str, Option], options: Mapping[str, Any]) -> str:
    """One problem of the settings, in words of TOML: place, name, value, remedy."""
    field = str(flaw.path[0])
    as_option = options.get(field) is not None
    written = spelled((*_WRITTEN.get(field, (field,)), *flaw.path[1:]))
    name = f"--rageval-{by_field[field].name}" if as_option else f"{place}: {written}"
    if flaw.is_unknown:
        return f"{name} is not a known key{_nearest(str(flaw.path[-1]), flaw.known)}"
    return f"{name} is missing" if flaw.is_missing else f"{name} {_in_toml(flaw.message)}"


_WRITTEN = {"mapping": ("target", "mapping"), "enabled": ("metrics", "enabled"), "metric_options": ("metrics",)}
"""Fields of Settings that stand elsewhere in the table."""


def _in_toml(message: str) -> str:
    """A message in which objects are tables. What was written stands before `expected`, and stays as it is."""
    before, expected, after = message.rpartition(", expected ")
    after = re.sub(r"^\{(.*)\}$", r"a table with \1", after).replace("an object", "a table")
    return f"{before.replace('is an object', 'is a table')}{expected}{after}"


def _shown(path: tuple[str | int, ...], value: Any) -> str:
    """A value as a message shows it; of headers only its kind: it may be a key."""
    if path[0] == "headers" or "headers" in path:
        return kind_in_words(value)
    return found(_public(value))


def _public(value: Any) -> Any:
    """The value, a URL in it without its password."""
    return public_target(value) if isinstance(value, str) else value


def _nearest(key: str, names: Sequence[str]) -> str:
    return did_you_mean(key, names, f"; known keys: {', '.join(sorted(names))}")
