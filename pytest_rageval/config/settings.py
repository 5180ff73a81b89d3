"""The settings of a run: options over environment over `[tool.rageval]` over defaults, as one frozen value."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field

from pytest_rageval.config.files import DEFAULT_CASES
from pytest_rageval.config.tables import (
    Abstention,
    Frozen,
    Gates,
    JudgeOptions,
    OneOrMore,
    Origin,
    Positive,
    Price,
    Regression,
    TargetMapping,
    Versions,
    Weight,
)
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.environment_secrets import secrets_of_environment
from pytest_rageval.io.expected import Expects
from pytest_rageval.io.masking import public_target, secrets_of_headers, secrets_of_params, secrets_of_target
from pytest_rageval.io.pass_rule import WrittenPassRule

RESERVED_PARAMS = {
    "question": "it is the case's",
    "history": "it is the case's",
    "conversation_id": "it is the case's",
    "vaults": "it is the case's",
    "folders": "it is the case's",
    "k": "set k",
    "folder_mode": "set folder_mode",
    "rerank_vector_weight": "set rerank_vector_weight",
    "rerank_lexical_weight": "set rerank_lexical_weight",
}
ENVIRONMENT = {"RAGEVAL_TARGET": "target", "RAGEVAL_JUDGE": "judge", "RAGEVAL_REPORTS": "reports"}
"""Settings by environment variable."""
T = TypeVar("T")
_CANNOT_CHANGE_RESULTS = object()
_NOT_IN_TABLE = object()
Operational = Annotated[T, _CANNOT_CHANGE_RESULTS]
"""A setting that affects how a run proceeds, never its results."""
OptionOnly = Annotated[T, _NOT_IN_TABLE]
"""A setting of one run alone, or of another key of the table than its own."""
_REGRESSION = 'a table such as { metric = "mrr", max_drop = 0.05 }'


class Settings(Frozen):
    """Everything a run is told. Field names are the keys of `[tool.rageval]`; see docs/configuration.md."""

    target: Annotated[str, Expects('a target, as in "http://localhost:8080"')] | None = None
    mapping: OptionOnly[TargetMapping | None] = None
    """Of the table's `target`; None where the target is no URL."""
    judge: str = "lexical"
    judge_base_url: str | None = None
    judge_temperature: float = Field(0.0, ge=0, le=2, allow_inf_nan=False)
    judge_repeats: Annotated[
        Annotated[int, Field(ge=1, le=99)] | Literal["near-gate"], Expects('1 to 99, or "near-gate"')
    ] = 1
    """How often each rubric is judged; the median counts. "near-gate": three times near the limit of a gate."""
    judge_requests: Literal["separate", "together"] = "separate"
    """"together" sends one request for all rubrics of an answer."""
    judge_concurrency: Operational[int] = Field(8, ge=1, le=1000)
    """Requests to the judge at the same time, all workers together."""
    judge_requests_per_minute: Operational[Positive | None] = None
    """Limit of the judge's provider, all workers together."""
    judge_tokens_per_minute: Operational[Positive | None] = None
    """The same limit, of tokens."""
    judge_options: Operational[JudgeOptions] = JudgeOptions()
    """What the judge's provider is told: max_tokens, reasoning_effort, headers, extra_body, omit, api, api_version."""
    judge_name: Operational[str | None] = Field(None, min_length=1, max_length=200)
    """Name of the judge's server in the keys of the cache, in place of host and path."""
    judge_cache: Operational[Literal["use", "refresh", "off", "replay"]] = "use"
    max_cost: Operational[Weight | None] = None
    """US dollars after which no new judgement is asked for."""
    rubrics: str | None = None
    """Folder of rubric files of the project's own, relative to the root directory."""
    reports: Operational[str] = "reports"
    notes: str | None = None
    """Folder of the notes that the system answers from, for labelling and the audit; relative to the root directory."""
    cases: Operational[Annotated[tuple[str, ...], Expects('a list of globs, as in ["evalcases/**/*.jsonl"]')]] = (
        DEFAULT_CASES
    )
    """Patterns of case files."""
    k: int = Field(5, ge=1, le=10_000)
    folder_mode: Literal["off", "on", "on_with_fallback"] | None = None
    rerank_vector_weight: Weight | None = None
    rerank_lexical_weight: Weight | None = None
    params: Mapping[str, Any] = Field(default_factory=dict)
    """Parameters sent with every question; not those that come from the case or have a key of their own."""
    versions: Versions = Versions()
    """Versions that the system does not report: llm, embedding, chunker, prompt, index."""
    prices: Mapping[str, Price] = Field(default_factory=dict)
    """US dollars for a million tokens by model, as in `{ input = 0.5, output = 2.0 }`; `"*"` is any other model."""
    origin: Operational[Origin | None] = None
    """Versions of agent and dataset, which the web app writes into the configuration of its runs."""
    headers: Operational[Mapping[str, str]] = Field(default_factory=dict)
    """HTTP headers; "env:NAME" takes the value from the environment."""
    timeout: Operational[Positive] = 120.0
    retries: Operational[int] = Field(2, ge=0, le=20)
    """How often a failed request is sent again."""
    concurrency: Operational[int] = Field(16, ge=1, le=1000)
    requests_per_minute: Operational[Positive | None] = None
    """Limit on requests to the system, all workers together, evenly spaced."""
    adaptive_concurrency: Operational[bool] = True
    """Are fewer calls made while the system or the judge refuses some?"""
    rate_limit_patience: Operational[Positive] = 300.0
    """Seconds without any success at a server after which the calls that it refuses fail."""
    look_ahead: Operational[int | None] = Field(None, ge=1)
    """How many cases may be asked before pytest gets to them; 4 × concurrency unless set."""
    metric_timeout: Operational[Positive] = 60.0
    """Seconds that one call of a metric of the project's own may take."""
    max_line_bytes: Operational[int] = Field(4 * 2**20, ge=1024)
    """Longest line, or CSV row, of a case file."""
    max_response_bytes: Operational[int] = Field(16 * 2**20, ge=1024)
    """Largest answer of any target, in bytes."""
    known_failures: Operational[Literal["fail", "ratchet", "report"]] = "fail"
    gold_by: Literal["anchors", "ids"] = "anchors"
    """"ids" measures retrieval by ids if a case has both anchors and ids."""
    strict_places: bool = False
    """Are places accepted only if they match exactly or normalised?"""
    path_prefix: str | None = Field(None, min_length=1)
    """The folders above the notes in the paths of the system or of the cases, as in "kb/notes"."""
    save_traces: Operational[bool] = True
    """Is the trace stored in results.jsonl?"""
    report: Operational[bool] = True
    """Is report.html written at the end of a run?"""
    report_json: Operational[bool] = True
    """Is report.json written at the end of a run?"""
    enabled: OptionOnly[
        Annotated[tuple[str, ...], Expects('a list of metrics and layers, as in ["retrieval", "mrr"]')] | None
    ] = None
    skipped: OptionOnly[Operational[tuple[str, ...]]] = ()
    """Layers that are not scored, by code or title."""
    ontology: Annotated[OneOrMore, Expects("a path or a list of paths")] | None = None
    """One TOML or JSON file, or the `.ttl` files of RDF with SHACL shapes, relative to the root directory."""
    metric_options: OptionOnly[Mapping[str, Mapping[str, Any]]] = Field(default_factory=dict)
    gates: Gates = Gates()
    """Lists of gates: `case` and `run`."""
    gate: OptionOnly[tuple[str, ...]] = ()
    """Gates of the command line: they replace the table's gates of the same metric."""
    abstention: Abstention = Abstention()
    """`phrases`: refusals of your bot, in addition to what is detected."""
    regression: Operational[
        Annotated[
            tuple[Annotated[Regression | str, Expects(_REGRESSION)], ...],
            Expects(f"a list, each of them {_REGRESSION}"),
        ]
    ] = ()
    """Regression gates: tables of metric, max_drop or max_rise, and significant; or texts as for the option."""
    tolerated: OptionOnly[Operational[tuple[str, ...]]] = ()
    """Regression gates of the command line: they replace those of the same metric."""
    weights: Mapping[str, Weight] = Field(default_factory=dict)
    """Weight of a layer in overall_score, by name or number; 1 unless set."""
    baseline: Operational[str | None] = None
    update_baseline: OptionOnly[Operational[bool]] = False
    force: OptionOnly[Operational[bool]] = False
    allow_regressions: Operational[bool] = False
    ignore_invariants: Operational[bool] = False
    retrieval_only: OptionOnly[bool] = False
    allow_partial: Operational[bool] = False
    repeat: int = Field(1, ge=1, le=1000)
    pass_rule: WrittenPassRule = "mean"  # noqa: S105 because it is no password
    """How the trials of a case decide about it, where the case does not say."""
    repeat_until: Literal["all", "decided"] = "all"
    """decided: no further trial of a case is asked once its pass rule cannot change any more."""
    confirm: Operational[int | None] = Field(None, ge=0, le=100)
    """How often a case that newly fails is asked again; None: twice where there is a baseline."""
    history: Literal["live", "gold"] = "live"
    """What stands for earlier replies of a conversation: the system's own answers, or the references."""
    rewrites: bool = False
    """Are follow-ups asked once more as their `rewrite`, without history? For the metric `rewrite_gap`."""
    on_turn_failure: Literal["continue", "stop"] = "continue"
    """What a conversation does after a turn that fails a gate."""
    shard: OptionOnly[Operational[str | None]] = None
    resume: OptionOnly[Operational[str | None]] = None
    run_id: OptionOnly[Operational[str | None]] = None
    description: OptionOnly[Operational[str | None]] = None
    web_allows: Annotated[tuple[str, ...], Expects('a list, as in ["shop.bot:ask"]')] = ()
    """Targets and judges that run code or read files, and that the browser may name."""
    store_full_text: Operational[bool] = False
    redact: Operational[bool] = False
    dry_run: OptionOnly[Operational[bool]] = False

    @classmethod
    def keys_of_table(cls) -> list[str]:
        """Return the settings that are keys of the table."""
        return [name for name, field in cls.model_fields.items() if _NOT_IN_TABLE not in field.metadata]

    def deciding(self) -> dict[str, Any]:
        """Return the settings that can change results, as JSON."""
        fields = type(self).model_fields.items()
        left_out = {name for name, field in fields if _CANNOT_CHANGE_RESULTS in field.metadata}
        left_out |= {name for name, default in defaults_of_younger_settings().items() if getattr(self, name) == default}
        return self.model_dump(mode="json", exclude=left_out)

    @property
    def ask_params(self) -> dict[str, Any]:
        """Return the parameters sent with every question, only those that are set."""
        parameters: dict[str, Any] = {}
        for name in ("folder_mode", "rerank_vector_weight", "rerank_lexical_weight"):
            value = getattr(self, name)
            if value is not None:
                parameters[name] = value
        return parameters | dict(self.params)

    def resolved_headers(self, environment: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the headers with `env:NAME` replaced from the environment; SettingsError if a variable is missing."""
        return _resolved("headers", self.headers, os.environ if environment is None else environment)

    def resolved_judge_headers(self, environment: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the headers of `judge_options`, resolved likewise; empty if only the cache answers."""
        if self.judge_cache == "replay":
            return {}
        environment = os.environ if environment is None else environment
        return _resolved("judge_options.headers", self.judge_options.headers, environment)

    def secrets(self, environment: Mapping[str, str] | None = None) -> Iterator[str]:
        """Yield all credentials of headers, URLs, parameters and the environment that this run can send or receive.

        A value within the specification of target, judge or metrics is never a credential.
        """
        written = (self.target or "", self.judge, *(self.enabled or ()))
        specifications = " ".join(public_target(spec).partition("://")[0] for spec in written)
        for secret in self._all_secrets(environment):
            if secret not in specifications:
                yield secret

    def _all_secrets(self, environment: Mapping[str, str] | None) -> Iterator[str]:
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
        """Return the longest time of a case's query in seconds: all attempts, with some waiting between them."""
        return self.timeout * (self.retries + 1) + 10

    @property
    def longest_call_in_words(self) -> str:
        """Return the longest time of a call with the settings behind it, for messages."""
        return f"{self.longest_call:.6g} s (timeout × (retries + 1) + 10 s)"

    @property
    def window(self) -> int:
        """Return how many cases may be prefetched; by default four times the concurrency."""
        return self.look_ahead or 4 * self.concurrency


def defaults_of_younger_settings() -> dict[str, Any]:
    """Return the defaults of settings that a run leaves out of config.json where it does not use them.

    Stored runs from before these settings have none of them, and compare with runs that do not use them.
    """
    younger = (
        "strict_places",
        "path_prefix",
        "prices",
        "pass_rule",
        "repeat_until",
        "history",
        "on_turn_failure",
        "rewrites",
    )
    return {name: Settings.model_fields[name].get_default(call_default_factory=True) for name in younger}


def _resolved(table: str, headers: Mapping[str, str], variables: Mapping[str, str]) -> dict[str, str]:
    resolved: dict[str, str] = {}
    problems: list[str] = []
    for name, value in headers.items():
        variable = value.removeprefix("env:")
        if not value.startswith("env:"):
            resolved[name] = value
        # Neither a colon nor the value after the header's name: the mask would take the rest of the line for its value.
        elif variable not in variables:
            problems.append(f"{table}.{name} cannot be sent, because the environment variable {variable} is not set")
        elif not variables[variable].strip():
            # So a CI service gives a secret that it lacks: with an empty key, each case would be an error.
            problems.append(
                f"{table}.{name} cannot be sent, because the environment variable {variable} is empty, "
                "as in CI if the secret does not exist, or in a build of a fork"
            )
        else:
            resolved[name] = variables[variable]
    if problems:
        raise SettingsError(*problems)
    return resolved
