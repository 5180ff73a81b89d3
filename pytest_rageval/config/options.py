"""Options that change from run to run, declared once: pytest adds a prefix, the command does not.

Also the kinds of targets, with their syntax and static properties.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pytest_rageval.providers import ASKED, FORMS

Kind = Literal["text", "number", "whole", "flag", "many"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `setting` is the field of Settings that it sets; `many` can be given more than once."""

    name: str
    help: str
    kind: Kind = "text"
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    setting: str = ""

    @property
    def dest(self) -> str:
        return "rageval_" + self.name.replace("-", "_")

    @property
    def field(self) -> str:
        return self.setting or self.name.replace("-", "_")

    def argparse(self) -> dict[str, Any]:
        """Return keyword arguments of `add_argument`; the default is always None, so that *not given* is visible."""
        arguments: dict[str, Any] = {"dest": self.dest, "default": None, "help": self.help}
        if self.kind == "flag":
            return arguments | {"action": "store_true"}
        if self.kind == "many":
            return arguments | {"action": "append", "metavar": self.metavar}
        if self.choices:
            return arguments | {"choices": self.choices}
        return arguments | {"metavar": self.metavar}


OBJECT = r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*"
"""`package.module:name`."""


class TargetKind(NamedTuple):
    """One kind of target.

    names          words before the colon, any of which is this kind
    syntax, short  its syntax in messages and in the help
    pattern        what a specification is like
    module, room   in `pytest_rageval.targets` unless it needs a higher room; its `from_spec` makes the target
    form           its choice on the browser's form, out of `TARGET_FORMS`; `python` where it has none of its own
    source         origin of its answers
    is_over_http   it has a host, to which a connection can be tried
    is_open        it runs no code and reads no file of this machine: the browser may name it
    is_checkable   it can be checked without a question, also in a dry run
    """

    names: tuple[str, ...]
    syntax: str
    short: str
    pattern: str
    module: str = "callable_target"
    form: str = "python"
    source: str = "asked"
    is_over_http: bool = False
    is_open: bool = False
    is_checkable: bool = False
    room: str = "targets"


HTTP = TargetKind(
    ("http", "https"),
    "http(s)://HOST[:PORT]",
    "http://HOST",
    r"https?://\S+",
    "http_target",
    form="http",
    is_over_http=True,
    is_open=True,
)
PYTHON = TargetKind((), "package.module:callable", "module:callable", OBJECT)
"""The kind for any other name: an object of the project, or a plug-in's target."""
KINDS_OF_TARGETS = (
    TargetKind(("demo",), "demo", "demo", "demo", "asgi_target", form="demo", is_open=True),
    HTTP,
    *(
        TargetKind(
            (api,),
            f"{api}:MODEL[@URL]",
            f"{api}:MODEL@URL",
            rf"{api}:\S.*",
            "chat_target",
            form="chat",
            is_over_http=True,
            is_open=True,
        )
        for api in ASKED
    ),
    PYTHON,
    TargetKind(("asgi",), "asgi:package.module:app", "asgi:module:app", f"asgi:{OBJECT}", "asgi_target"),
    TargetKind(
        ("answers",),
        "answers:FILE[#SYSTEM]",
        "answers:FILE",
        r"answers:\S.*",
        "answers_target",
        source="uploaded answers",
        is_checkable=True,
    ),
    TargetKind(
        ("run",),
        "run:RUN_ID",
        "run:ID",
        r"run:\S+",
        "recorded_target",
        source="recorded answers",
        is_open=True,
        room="runs",
    ),
)
UPLOADED = "answers"
"""The choice of the browser's form without a target: answers are uploaded."""
TARGET_FORMS = {
    "demo": "the demo system",
    "http": "a server, at a URL",
    "chat": "a model of a provider",
    UPLOADED: "answers that I upload",
    "python": "code of this project",
}
"""The choices of the browser's form, in its order."""
SPELLINGS = ", ".join(kind.syntax for kind in KINDS_OF_TARGETS)
_BY_NAME = {name: kind for kind in KINDS_OF_TARGETS for name in kind.names}


def kind_of(spec: str) -> TargetKind:
    """Return the kind of the target of a specification."""
    return _BY_NAME.get(spec.partition(":")[0], PYTHON)


def is_target(spec: str) -> bool:
    """Return True if a specification is written as one of its kind."""
    return re.fullmatch(kind_of(spec).pattern, spec) is not None


OPTIONS: tuple[Option, ...] = (
    Option(
        "target",
        f"System under test: {', '.join(kind.short for kind in KINDS_OF_TARGETS)}.",
        metavar="SPEC",
    ),
    Option("k", "How many chunks count: the cut-off of every metric named without one (default: 5).", "whole", "N"),
    Option("folder-mode", "Folder selection of the system under test.", choices=("off", "on", "on_with_fallback")),
    Option("rerank-vector-weight", "Weight of vector scores, sent with every question.", "number", "X"),
    Option("rerank-lexical-weight", "Weight of lexical scores, sent with every question.", "number", "X"),
    Option(
        "param",
        "Extra parameter sent with every question, as in min_score=0.3 (repeatable).",
        "many",
        "NAME=VALUE",
        setting="params",
    ),
    Option(
        "version",
        "Version that the system does not report: llm, embedding, chunker, prompt or index (repeatable).",
        "many",
        "NAME=VALUE",
        setting="versions",
    ),
    Option("timeout", "Seconds that one attempt at a question may take in all (default: 120).", "number", "SECONDS"),
    Option(
        "judge",
        f"Judge of answers: lexical (default), none, stub:SCORE, {', '.join(FORMS)}, embedding:MODEL@URL, nli:FOLDER, "
        "deepeval:METRIC, module:object; or a bare MODEL, with a base URL.",
        metavar="SPEC",
    ),
    Option("judge-base-url", "Server of the judge, of OpenAI's kind.", metavar="URL"),
    Option("judge-temperature", "Sampling temperature of the judge (default: 0).", "number", "X"),
    Option(
        "judge-cache", "What stored judgements are for (default: use).", choices=("use", "refresh", "off", "replay")
    ),
    Option("max-cost", "US dollars after which no new judgement is asked for.", "number", "USD"),
    Option(
        "retrieval-only",
        "Score retrieval, query understanding, graph and abstention as told or phrased; judge nothing.",
        "flag",
    ),
    Option(
        "metrics",
        "Metrics or layers to score, comma-separated, instead of those configured.",
        metavar="NAMES",
        setting="enabled",
    ),
    Option(
        "skip",
        "Layers not to score, comma-separated, as in retrieval,abstention; their gates say nothing.",
        metavar="LAYERS",
        setting="skipped",
    ),
    Option(
        "gate",
        "Gate, as in 'recall_any@5 >= 0.8 when category=multi_hop' or 'run recall_any@5 >= 0.85' (repeatable).",
        "many",
        "EXPR",
        setting="gate",
    ),
    Option(
        "regression",
        "Tolerated change against the baseline, as in 'recall_any@k drop 0.05' (repeatable).",
        "many",
        "EXPR",
        setting="tolerated",
    ),
    Option(
        "baseline",
        "Baseline to compare with: a file, run:ID, or none (default: REPORTS/baseline.json, where it exists).",
        metavar="PATH",
    ),
    Option("update-baseline", "Accept this run as the new baseline.", "flag"),
    Option(
        "force",
        "With --rageval-update-baseline: even from a run with errors or without answers; never from a partial one.",
        "flag",
    ),
    Option("allow-regressions", "Report regressions without failing the run.", "flag"),
    Option("ignore-invariants", "Compare with a baseline of other cases, and what another judge scored.", "flag"),
    Option(
        "known-failures",
        "What a case that also failed in the baseline does (default: fail).",
        choices=("fail", "ratchet", "report"),
    ),
    Option("allow-partial", "Skip cases that an answers file does not cover, and mark the run partial.", "flag"),
    Option("repeat", "Ask each case N times; gates look at the mean (default: 1).", "whole", "N"),
    Option(
        "pass-rule",
        "With repeats: a case passes by the mean (default), or if all, the majority, any or a share of its trials "
        "pass, as in 0.8.",
        metavar="RULE",
    ),
    Option(
        "repeat-until",
        "decided: ask no further trial of a case once its rule cannot change (default: all).",
        choices=("all", "decided"),
    ),
    Option(
        "confirm",
        "Ask a case that newly fails a gate N times again; it fails if most attempts do (default: 2 with a baseline).",
        "whole",
        "N",
    ),
    Option(
        "history",
        "Earlier replies of a conversation: the system's own answers (live, the default) or the references (gold).",
        choices=("live", "gold"),
    ),
    Option("rewrites", "Ask follow-ups that have a rewrite once more as it, for the metric rewrite_gap.", "flag"),
    Option("shard", "Take one of N equal parts of the cases, as in 1/4; rageval merge joins the runs.", metavar="I/N"),
    Option("resume", "Finish a run that was interrupted: its id, or latest.", metavar="RUN"),
    Option("concurrency", "How many cases are asked and judged at the same time (default: 16).", "whole", "N"),
    Option("reports", "Folder for runs, metrics and baseline (default: reports).", metavar="DIR"),
    Option("run-id", "Name of this run's folder (default: the UTC time).", metavar="ID"),
    Option("description", "A line about this run, kept in its summary.", metavar="TEXT"),
    Option("store-full-text", "Keep whole texts in results.jsonl instead of their first 200 characters.", "flag"),
    Option("redact", "Write no question, answer or chunk text to any file.", "flag"),
    Option("dry-run", "Check configuration, cases and gates; ask nothing, write nothing.", "flag"),
)
