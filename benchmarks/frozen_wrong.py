"""Frozen scenarios of wrong inputs: the messages and exit statuses, by pytest and by the command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from frozen_pairs import BOTS, a_case
from frozen_scenario import Scenario, jsonl

CASES = jsonl([a_case("first"), a_case("second")])
ANSWERS = jsonl({"id": name, "answer": "Water boils at 100 degrees at sea level."} for name in ("first", "second"))
GOOD = {
    "bots.py": BOTS,
    "evalcases/a.jsonl": CASES,
    "rageval.toml": 'target = "bots:good"\n',
}
KEYS = {"id": "k", "question": "Who?", "gold_suports": [], "gold": {"anwser": "x"}, "answerable": "yes", "tags": "one"}
NO_HEADER = "What is A?,A is one.\n"


class Wrong(NamedTuple):
    """What is wrong: options of both commands without their prefix, files, further steps."""

    options: str = ""
    files: Mapping[str, str] = {}
    steps: tuple[str, ...] = ()


def cases(text: str) -> Wrong:
    """Return case files that are wrong; they can be validated, too."""
    return Wrong(files={"evalcases/a.jsonl": text}, steps=("rageval cases validate", "rageval cases validate --json"))


def configured(text: str) -> Wrong:
    return Wrong(files={"rageval.toml": text}, steps=("rageval doctor",))


WRONG = {
    "broken-json": cases(CASES + '{"id": "x", "question": \n{"id": "y", "question": "?",}\nnull\n[1]\n'),
    "unknown-keys": cases(jsonl([KEYS, {"question": ""}, {"id": 3, "question": "Why?"}, {"id": "n"}])),
    "duplicate-ids": cases(CASES + CASES),
    "duplicate-keys": cases('{"id": "a", "id": "b", "question": "Who?", "x": NaN}\n'),
    "bad-groups": cases(jsonl([a_case("g", required_support_groups=[[0, 7], []]), a_case("h", gold_supports=[{}])])),
    "no-cases": cases(""),
    "bad-bytes": cases("\ufeff" + CASES + '{"id": "a\u0000b", "question": "\u202e?"}\n'),
    "bad-gate": Wrong("--gate 'mrr > > 1'"),
    "bad-gate-when": Wrong("--gate 'mrr >= 1 when colour=red' --gate 'run mrr' --gate 'mrr >= abc'"),
    "unknown-metric-gate": Wrong("--gate 'recall_an@5 >= 1'"),
    "unknown-metric": Wrong("--metrics recal_any,mrr"),
    "bad-regression": Wrong("--regression 'mrr drops 5'"),
    "no-target": Wrong(files={"rageval.toml": ""}, steps=("rageval doctor",)),
    "target-module": Wrong("--target nobots:good"),
    "target-attribute": Wrong("--target bots:goood"),
    "target-no-function": Wrong("--target bots:WATER"),
    "target-odd": Wrong("--target ftp://somewhere"),
    "target-file": Wrong("--target answers:nowhere.jsonl"),
    "bad-baseline": Wrong("--baseline nowhere.json"),
    "damaged-baseline": Wrong("--baseline bad.json", {"bad.json": '{"schema": 99, "metrics": '}),
    "baseline-no-run": Wrong("--baseline run:nowhere"),
    "config-unknown-keys": configured('target = "bots:good"\ntraget = "x"\nk = "five"\nknown_failures = "maybe"\n'),
    "config-no-toml": configured("target = = 3\n"),
    "two-configs": Wrong(files={"pyproject.toml": '[tool.rageval]\ntarget = "bots:lost"\n'}, steps=("rageval doctor",)),
    "shard": Wrong("--shard 3/2"),
    "shard-zero": Wrong("--shard 0/2 --repeat 0"),
    "param": Wrong("--param min_score"),
    "judge": Wrong("--judge lexicall"),
    "judge-model": Wrong("--judge openai:gpt-4o"),
    "resume-nothing": Wrong("--resume nowhere"),
    "run-id": Wrong("--run-id ../up"),
    "csv-columns": Wrong(
        files={"evalcases/b.csv": "id,frage,antwort\n1,What?,That\n"}, steps=("rageval cases validate",)
    ),
    "csv-rows": Wrong(files={"evalcases/b.csv": 'id,question\n1\n2,"open\n'}, steps=("rageval cases validate",)),
    "answers-missing": Wrong("--target answers:answers.jsonl", {"answers.jsonl": ANSWERS.splitlines()[0] + "\n"}),
    "answers-other-question": Wrong(
        "--target answers:answers.jsonl",
        {
            "answers.jsonl": ANSWERS
            + jsonl([{"id": "third", "answer": ""}])
            + ANSWERS.replace("{", '{"question": "?", ')
        },
    ),
    "answers-broken": Wrong("--target answers:answers.jsonl", {"answers.jsonl": '{"id": "first", "answr": 3}\n{'}),
    "answers-csv": Wrong("--target answers:answers.csv", {"answers.csv": NO_HEADER}),
}


def a_scenario(name: str, wrong: Wrong) -> Scenario:
    """Run pytest and the command with the same wrong input."""
    of_pytest = wrong.options.replace("--", "--rageval-")
    steps = (f"pytest -q {of_pytest}".rstrip(), f"rageval run {wrong.options}".rstrip(), *wrong.steps)
    return Scenario(f"wrong-{name}", {**GOOD, **wrong.files}, steps)


RECORD = json.dumps({"schema": 2, "case_key": "a", "scores": {}})
STORED_RUNS = Scenario(
    "wrong-stored-runs",
    GOOD
    | {"damaged.txt": f"{RECORD}\nnot json\n", "empty.txt": "", "labels.csv": NO_HEADER, "newer.txt": '{"schema": 99}'},
    (
        "rageval run --run-id a",
        "rageval run --run-id b",
        "rageval compare a nowhere",
        "rageval explain a nowhere",
        "rageval explain a firts",
        "rageval export a --format xml",
        "rageval gate a --gate 'mmr >= 1'",
        "rageval score a --metrics nothing",
        "rageval judge a --judge nothing",
        "rageval metrics mmr",
        "rageval history --metric mmr",
        "rageval calibrate labels.csv",
        "rageval calibrate nowhere.csv",
        "rageval cases convert nowhere.json",
        "rageval cases convert labels.csv --from squad",
        "rageval generate nowhere",
        "rageval merge a b",
        "rageval sweep --grid k=x",
        "rageval runs prune",
        "rageval comapre a b",
        "rageval compare a",
        "rageval answers from-traces labels.csv --format langfuse",
        "rageval run --only 'outcome:failed' --from nowhere",
        "cp damaged.txt reports/runs/a/results.jsonl",
        "rageval compare a b",
        "rageval explain a first",
        "rageval score a",
        "rageval report a",
        "rageval runs list",
        "cp empty.txt reports/runs/b/metrics.json",
        "rageval compare b b",
        "rageval history",
        "cp newer.txt reports/runs/b/config.json",
        "rageval runs show b",
        "rm reports/runs/b/results.jsonl",
        "rageval explain b first",
        "rageval export b --format csv --output -",
    ),
)
WRONG_SCENARIOS = (*(a_scenario(name, wrong) for name, wrong in WRONG.items()), STORED_RUNS)
