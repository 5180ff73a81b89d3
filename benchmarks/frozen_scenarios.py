"""The scenarios whose outputs are frozen: files, command lines, and the files that are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from frozen_pairs import PAIR_SCENARIOS
from frozen_scenario import Scenario, folder, jsonl, of_run
from frozen_wrong import WRONG_SCENARIOS

REPOSITORY = Path(__file__).parent.parent
INPUT = REPOSITORY / "tests" / "data" / "frozen-input"


def first_lines(files: Mapping[str, str], count: int) -> dict[str, str]:
    return {name: "".join(text.splitlines(keepends=True)[:count]) for name, text in files.items()}


# The shipped cases, on the demo system

SHIPPED = folder(REPOSITORY / "evalcases", "evalcases/")
DEMO = {"pyproject.toml": '[tool.rageval]\ntarget = "demo"\nknown_failures = "ratchet"\n'}
SINGLE = {name: text for name, text in SHIPPED.items() if "conversations" not in name}
RECORDED = (
    first_lines(SINGLE, 4)
    | {"answers.jsonl": (INPUT / "demo" / "answers.jsonl").read_text(encoding="utf-8")}
    | {"pyproject.toml": '[tool.rageval]\ntarget = "answers:answers.jsonl"\nknown_failures = "ratchet"\n'}
)
"""Some of the cases with recorded answers of the demo system: no measured time stands in their outputs."""
LOOKS = (
    "rageval history", "rageval history --json", "rageval history --format csv --metric mrr", "rageval runs list",
    "rageval runs show second", "rageval runs list --json", "rageval explain first brand-rivals-moru",
    "rageval explain first brand-rivals-moru --format markdown",
    "rageval explain first brand-rivals-moru --format json --full",
    "rageval comment second", "rageval metrics", "rageval metrics ndcg", "rageval metrics --json",
    "rageval gate first --gate 'mrr >= 0.9' --gate 'run recall_any@5 >= 0.99'", "rageval gate first --json",
    "rageval report second --compare first --output page.html",
)  # fmt: skip
EXPORTS = (
    "rageval export first --format csv --output -", "rageval export first --format json --output out.json",
    "rageval export first --format sqlite --output out.sqlite", "rageval export first --format trec-run --output -",
    "rageval export first --format trec-qrels --output -",
)  # fmt: skip
TYPED = ("help", "What is sell-through?", "eval 0", "set k 2", "diff", "judge 0", "report", "nonsense", "quit")
TWO_RUNS = (
    "rageval run --run-id first --update-baseline",
    "rageval run --run-id second --k 2",
)
DEMO_SCENARIOS = (
    Scenario(
        "shipped-pytest",
        DEMO | SHIPPED,
        (
            "pytest --rageval-run-id first --junitxml junit.xml --html page.html --rageval-update-baseline",
            "pytest --rageval-run-id second --rageval-param min_score=0.9 -q --tb=line",
            "rageval compare first second",
            "rageval compare first second --format markdown",
        ),
        ("junit.xml", *of_run("first", "results.jsonl", "summary.md", "metrics.json"), *of_run("second", "summary.md")),
        of_run("first", "results.jsonl"),
    ),
    Scenario(
        "shipped-command",
        DEMO | SHIPPED,
        ("rageval run --run-id first --json",),
        of_run("first", "results.jsonl", "config.json"),
        of_run("first", "results.jsonl"),
    ),
    Scenario(
        "two-runs",
        RECORDED,
        (
            *TWO_RUNS,
            "rageval compare first second",
            "rageval compare first second --format markdown",
            "rageval compare first second --json",
            "rageval compare first second --format html --output compared.html",
            *LOOKS,
        ),
        ("compared.html", "page.html", "reports/baseline.json", *of_run("second")),
        ("compared.html", "page.html"),
    ),
    Scenario("exports", RECORDED, (TWO_RUNS[0], *EXPORTS), ("out.json", "out.sqlite"), ("out.json",)),
    Scenario(
        "scored-again",
        RECORDED | {"evalcases2/sanity.jsonl": SHIPPED["evalcases/sanity.jsonl"].replace("false", "true")},
        (
            *TWO_RUNS,
            "rageval score second --metrics answer,mrr",
            "rageval score second --cases evalcases2/sanity.jsonl",
            "rageval abstention second --output-metrics abstention.json",
            "rageval judge second --judge stub:3",
            "rageval judge second --spot-check --second-judge stub:1 --spot-check-n 5",
            "rageval judge-cache stats",
            "rageval judge-cache export -",
        ),
        ("abstention.json", *of_run("second", "results.jsonl", "metrics.json", "config.json", "summary.md", "*spot*")),
        ("abstention.json", *of_run("second", "results.jsonl")),
    ),
    Scenario(
        "processes",
        DEMO | first_lines(SINGLE, 4),
        (
            "pytest -n 2 -q --tb=no -rN --rageval-run-id both",
            "rageval run --run-id half-1 --shard 1/2",
            "pytest -q --tb=no --rageval-run-id half-2 --rageval-shard 2/2",
            "rageval merge half-1 half-2 --run-id whole",
            "rageval compare both whole",
            "rageval run --run-id thrice --repeat 3 --judge none evalcases/sanity.jsonl",
        ),
        (*of_run("both", "metrics.json"), *of_run("whole", "summary.md"), *of_run("thrice", "results.jsonl")),
        of_run("thrice", "results.jsonl"),
    ),
    Scenario(
        "pytest-html",
        DEMO | {"evalcases/sanity.jsonl": SHIPPED["evalcases/sanity.jsonl"]},
        ("pytest --html page.html --self-contained-html --rageval-run-id only -v", "pytest --lf -q -k password"),
        ("page.html", *of_run("only", "config.json", "results.jsonl")),
        of_run("only", "results.jsonl"),
    ),
    Scenario(
        "sweep-and-repl",
        DEMO | first_lines(SINGLE, 6) | {"lines.txt": "\n".join(TYPED) + "\n"},
        (
            "rageval sweep --grid k=2,5 --grid min_score=0.2,0.4 --target demo evalcases/lab_ids.jsonl",
            "rageval sweep --grid k=1,3 --sample 4 --confirm --json evalcases/lab_ids.jsonl",
            "rageval repl evalcases/lab_ids.jsonl < lines.txt",
        ),
    ),
)  # fmt: skip

# Verbs that need no run

NOTES = """# Parcels

Q: How long does a parcel to Jeju take?
A: Three days. In winter it takes five.

## What does a return cost?

A return costs 4 euros.
"""
VERBS = (
    "", "init", "doctor", "demo", "schema", "completion", "run", "comment", "compare", "explain", "history", "metrics",
    "report", "web", "answers", "answers from-traces", "cases", "cases audit", "cases convert", "cases draft",
    "cases export", "cases from-traces", "cases schema", "cases stats", "cases validate", "generate", "label", "repl",
    "sweep", "calibrate", "judge", "judge-cache", "judge-cache export", "judge-cache prune", "judge-check",
    "abstention", "export", "gate", "merge", "runs", "runs list", "runs show", "runs prune", "score",
)  # fmt: skip
TRACED_CASES = '{"id": "boiling", "question": "What is the boiling point of water?", "reference": "At 100 degrees."}\n'
VERB_SCENARIOS = (
    Scenario("help", {}, [f"rageval {verb} --help" for verb in VERBS]),
    Scenario(
        "schema",
        {},
        ("rageval schema", "rageval schema --skill", "rageval cases schema", "rageval metrics --markdown"),
    ),
    Scenario(
        "start",
        {},
        (
            "rageval init --yes",
            "rageval doctor",
            "pytest -q",
            "rageval init --yes --ci github",
            "rageval doctor --json",
        ),
        ("evalcases/*", "rageval.toml", "reports/.gitignore", ".github/**/*", "*.new"),
    ),
    Scenario(
        "cases",
        DEMO | SHIPPED,
        (
            "rageval cases validate",
            "rageval cases validate --json",
            "rageval cases stats",
            "rageval cases stats --json",
            "rageval cases audit",
            "rageval cases export evalcases/sanity.jsonl --to ragas -o ragas.jsonl",
            "rageval cases convert evalcases/glossary.questions.csv",
        ),
        ("ragas.jsonl",),
    ),
    Scenario("generate", {"notes/parcels.md": NOTES}, ("rageval generate notes", "rageval generate notes --json"),
             ("evalcases/*",)),
    Scenario(
        "traces",
        {"evalcases/water.jsonl": TRACED_CASES} | folder(INPUT / "traces"),
        [
            step
            for file, format in (("langfuse", "langfuse"), ("otlp", "otlp"), ("phoenix", "openinference"))
            for step in (
                f"rageval answers from-traces {file}.json --format {format} --cases evalcases/water.jsonl",
                f"rageval cases from-traces {file}.json --format {format} -o evalcases/{file}.drafts.jsonl",
                f"rageval run --target answers:{file}.answers.jsonl --run-id {file}",
            )
        ],
        ("*.answers.jsonl", "evalcases/*.drafts.jsonl", *of_run("langfuse", "results.jsonl")),
    ),
    Scenario("judge-check", {}, ("rageval judge-check --judge lexical", "rageval judge-check --judge stub:3 --json")),
    Scenario(
        "calibrate",
        folder(INPUT / "groundedness"),
        (
            "rageval calibrate labels.jsonl --judge lexical",
            "rageval calibrate labels.jsonl --judge lexical --format json --gate 'groundedness >= 2'",
        ),
    ),
)  # fmt: skip

# Data of other people


def answered(name: str, *more: str) -> tuple[str, ...]:
    return (f"rageval run --target answers:{name}.jsonl --run-id {name} {' '.join(more)}".rstrip(),)


def data_project(name: str) -> dict[str, str]:
    """Return a folder of the input as a project: its cases in `evalcases/`, the rest beside it."""
    files = folder(INPUT / name)
    return {"evalcases/cases.jsonl": files.pop("cases.jsonl"), **files}


FOUNDING = folder(INPUT / "founding")
FOREIGN = folder(INPUT / "foreign")
DIALECTS = json.loads((INPUT / "dialects" / "dialects.json").read_text(encoding="utf-8"))


def dialect_files() -> dict[str, str]:
    """Return a case a dialect, and an answers file whose passages are named in these dialects."""
    readable = [row for row in DIALECTS if isinstance(row.get("heading_path", ""), str)]
    gold = [{"rel_path": "a.md", "heading_path": "# A > ## B"}]
    cases = [{"id": row["name"], "question": f"What is B, {row['name']}?", "gold_supports": gold} for row in readable]
    answers = [
        {
            "id": row["name"],
            "answer": "B is two.",
            "retrieved_chunks": [
                {"chunk_id": "c", "rank": 1, "text": "B is two."}
                | {key: row[key] for key in ("rel_path", "heading_path") if key in row}
            ],
        }
        for row in readable
    ]
    return {
        "notes/a.md": "# A\n\n## B\n\nB is two.\n",
        "pyproject.toml": '[tool.rageval]\nnotes = "notes"\n',
        "evalcases/cases.jsonl": jsonl(cases),
        "answers.jsonl": jsonl(answers),
    }


DATA_SCENARIOS = (
    Scenario(
        "data-retrieval",
        data_project("retrieval"),
        (*answered("answers"), *answered("worse", "--baseline run:answers"), "rageval compare answers worse",
         "rageval compare answers worse --json"),
        of_run("worse", "results.jsonl", "metrics.json", "summary.md"),
        of_run("worse", "results.jsonl"),
    ),
    Scenario(
        "data-answers",
        data_project("answers"),
        (
            *answered("bert", "--metrics L5,abstention"),
            *answered("perturbed", "--metrics exact_match,token_f1,abstention"),
            "rageval compare bert perturbed --ignore-invariants",
        ),
        of_run("perturbed", "scores.jsonl", "summary.md") + of_run("bert", "metrics.json"),
    ),
    Scenario(
        "data-abstention",
        data_project("abstention"),
        (*answered("answers", "--metrics abstention"), "rageval history"),
        of_run("answers", "results.jsonl", "summary.md"),
        of_run("answers", "results.jsonl"),
    ),
    Scenario(
        "data-dialects",
        dialect_files(),
        ("rageval run --target answers:answers.jsonl --run-id a --metrics L2", "rageval doctor"),
        of_run("a", "results.jsonl", "summary.md"),
    ),
    Scenario(
        "data-foreign",
        FOREIGN,
        [
            *(f"rageval cases convert {name}" for name in FOREIGN if "/" not in name and not name.startswith("qrels")),
            "rageval cases convert beir",
            "rageval cases convert topics.tsv --qrels qrels.txt -o trec.jsonl",
            "rageval cases convert topics.xml --qrels qrels.txt --from trec",
        ],
        ("trec.jsonl",),
    ),
    Scenario(
        "data-founding",
        {f"evalcases/{name}": text for name, text in FOUNDING.items() if name != "uploaded.csv"},
        ("rageval cases validate", "rageval cases stats", "rageval cases convert evalcases/one.csv"),
    ),
    Scenario(
        "data-uploaded",
        {"evalcases/one.csv": FOUNDING["one.csv"], "uploaded.csv": FOUNDING["uploaded.csv"]},
        (
            "rageval run --target answers:uploaded.csv --run-id uploaded",
            "rageval export uploaded --format csv --output -",
            "pytest -q --rageval-target answers:uploaded.csv",
        ),
        of_run("uploaded", "results.jsonl", "summary.md"),
    ),
)  # fmt: skip

SCENARIOS: Sequence[Scenario] = (*DEMO_SCENARIOS, *VERB_SCENARIOS, *DATA_SCENARIOS, *PAIR_SCENARIOS, *WRONG_SCENARIOS)
