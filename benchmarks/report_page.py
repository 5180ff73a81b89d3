"""What does the report of a run cost: to write, to hold, to open, to filter? 100, 10,000 and 100,000 made-up cases.

    python benchmarks/report_page.py [CASES…]

Each size is compared with a run before it in which a tenth of the cases passed. The page is opened in the machine's own
Chromium, in a process of its own; where there is none, only size and build time are measured.
"""

from __future__ import annotations

import importlib.util
import json
import random
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import Figure, Row, Scale, empty_folder, measure_inside

from pytest_rageval.runs.records.line_form import SCHEMA

SIZES = (100, 10_000, 100_000)
GOALS = {100: (0.3, 0.1, 300), 10_000: (3, 1.5, 500), 100_000: (20, 10, 1200)}
"""Megabytes, seconds to build, milliseconds until the first rows stand there."""
FAILING = 0.1
TEXT = """the stock of winter goods is kept in northern warehouse since it was moved there from harbour and nobody else
has keys for gate which closes at night but opens early on market days"""
WORDS = TEXT.split()
METRICS = ("recall_any@k", "recall_all@k", "context_recall@k", "precision@k", "mrr", "ndcg@k", "token_f1",
           "groundedness", "correctness", "abstention_accuracy")  # fmt: skip


def rows(scale: Scale) -> Iterator[Row]:
    """Size, build time and what the browser does with it."""
    for cases in SIZES if scale.is_full else SIZES[:2]:
        megabytes, seconds, ready = GOALS[cases]
        values = measure_inside("report_page", cases=cases)
        goals = {
            "size": megabytes,
            "build": seconds,
            "ready": ready,
            "filter": 50,
            "open": 50,
            "heap": 80,
            "nodes": 2500,
        }
        units = {"size": "MB", "build": "s", "heap": "MB", "nodes": ""}
        for name, value in values.items():
            figure = Figure(value, value)
            yield Row(f"report of {cases:,} cases: {name}", units.get(name, "ms"), figure, goal=goals[name])


def inside(cases: int) -> dict[str, Any]:
    """Make two runs, write the report of the second, open it; runs in a process of its own."""
    with empty_folder() as folder:
        store_runs(folder, cases)
        build, path = built(folder)
        figures = {"size": path.stat().st_size / 1e6, "build": build}
        return figures | (opened(path) if importlib.util.find_spec("playwright") and browser() else {})


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────


def store_runs(folder: Path, cases: int) -> None:
    """Two runs below `folder`: `before` and `now`, in which a tenth of the cases fails that passed before."""
    from pytest_rageval.config.settings import Settings
    from pytest_rageval.metrics import load_registry
    from pytest_rageval.run.plan import make_plan

    luck = random.Random(1)
    plan = make_plan(Settings(enabled=METRICS), load_registry())
    names = [measure.name for measure in plan.measures]
    before = [a_record(number, names, luck, "passed") for number in range(cases)]
    now = [
        worsened(record, a_record(number, names, luck, "failed"), luck) if luck.random() < FAILING else record
        for number, record in enumerate(before)
    ]
    for name, records in (("before", before), ("now", now)):
        store_run(folder / "runs" / name, records, plan)


def store_run(folder: Path, records: list[dict[str, Any]], plan: Any) -> None:
    from pytest_rageval.io.atomic import write_json
    from pytest_rageval.runs.aggregate import RunInfo, aggregate
    from pytest_rageval.runs.columns import CaseColumns, write_scores
    from pytest_rageval.runs.records.result_line import to_line
    from pytest_rageval.runs.row import Row as CaseRow

    folder.mkdir(parents=True)
    case_rows = [CaseRow.of(record) for record in records]
    info = RunInfo("hash", None, len(records), False, None, {"run_id": folder.name})
    write_json(folder / "metrics.json", aggregate(case_rows, plan, info))
    write_json(folder / "config.json", {"k": 5, "dataset_hash": "d", "settings": {"gold_by": "anchors"}})
    write_scores(folder, CaseColumns.of_rows(case_rows))
    with (folder / "results.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(to_line(record) + "\n" for record in records)
    with (folder / "observations.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(to_line(an_observation(record)) + "\n" for record in records)


def words(luck: random.Random, number: int) -> str:
    return " ".join(luck.choice(WORDS) for _ in range(number))


def a_record(number: int, names: list[str], luck: random.Random, outcome: str) -> dict[str, Any]:
    """A line of results.jsonl of the usual size, with texts that do not compress better than people's."""
    scores = {name: round(luck.random(), 4) if number % 2 else float(luck.random() < 0.8) for name in names}
    chunks = [
        {"chunk_id": f"c{luck.randrange(10**6)}", "rel_path": f"notes/{luck.choice(WORDS)}.md", "heading_path": "# A",
         "rank": rank, "score_vector": None, "score_lexical": None, "score_final": round(luck.random(), 3),
         "text": words(luck, 33), "token_count": 40, "matches": [0] if rank == 2 else []}
        for rank in range(1, 6)
    ]  # fmt: skip
    failed = [{"metric": "token_f1", "value": 0.2, "threshold": ">= 0.5", "tag": "L5_wrong_answer"}]
    gates = failed if outcome == "failed" else []
    return {
        "schema": SCHEMA, "case_key": f"evalcases/some.jsonl::case-{number}", "test_case_id": f"case-{number}",
        "trial": 0, "attempts": 1, "gold": "anchors", "requires_kg": False, "indexing_coverage": None, "references": [],
        "correctness": None, "judge_input": None, "score_details": {}, "versions": None, "reported": ["chunks"],
        "content_hash": "h", "outcome": outcome, "reason": "token_f1 is 0.2, gate >= 0.5" if gates else None,
        "category": ("factual", "multi_hop", "negative")[number % 3], "difficulty": "hard", "domain": None, "tags": [],
        "answerable": True, "question": words(luck, 12), "answer": words(luck, 35), "retrieved_chunks": chunks,
        "groundedness": {"score": 4.0, "reasoning": words(luck, 10), "model": "m", "heuristic": False,
                         "supported_claims": [words(luck, 8)], "unsupported_claims": [words(luck, 8)]},
        "abstention": {"abstained": False}, "scores": scores, "skipped_metrics": {}, "judge": None, "error": None,
        "latency": {"total_ms": 100 * luck.random(), "queue_ms": None, "judge_ms": None},
        "source": {"file": "evalcases/some.jsonl", "line": number + 1},
        "cost": {"judge_tokens": None, "judge_cost_usd": None, "target_usage": None, "judgements": 0,
                 "judgements_cached": 0},
        "verdict": {"passed": not gates, "trial_passed": not gates, "gates_held": 3, "failed_gates": gates},
    }  # fmt: skip


def worsened(record: dict[str, Any], failed: dict[str, Any], luck: random.Random) -> dict[str, Any]:
    """The case as it failed: half of the answer is another one, and two of its chunks."""
    answer = record["answer"].split()
    chunks = [*record["retrieved_chunks"][:3], *failed["retrieved_chunks"][3:]]
    return failed | {
        "question": record["question"],
        "answer": " ".join([*answer[: len(answer) // 2], words(luck, 15)]),
        "retrieved_chunks": chunks,
    }


def an_observation(record: dict[str, Any]) -> dict[str, Any]:
    """A line of observations.jsonl of the case: gold, key facts, and the whole answer with its chunks."""
    snippet = " ".join(record["retrieved_chunks"][1]["text"].split()[:6])
    gold = {
        "answer": record["answer"][:120], "key_facts": [record["answer"][:30], "kept on the moon"],
        "supports": [{"rel_path": record["retrieved_chunks"][1]["rel_path"], "snippets": [snippet]},
                     {"rel_path": "notes/b.md"}],
    }  # fmt: skip
    case = {"id": record["test_case_id"], "question": record["question"], "gold": gold}
    source = [record["source"]["file"], record["source"]["line"]]
    names = ("chunk_id", "rel_path", "heading_path", "rank", "score_final", "text")
    chunks = [{name: chunk[name] for name in names} for chunk in record["retrieved_chunks"]]
    answer = {"answer": record["answer"], "abstained": False, "debug": {"retrieved_chunks": chunks}}
    return {
        "schema": SCHEMA, "case_key": record["case_key"], "trial": 0, "case": case | {"source": source},
        "answer": answer, "judgements": {}, "asked_k": 5, "k": 5, "params": {},
        "timings": {"ask_ms": 100.0, "queue_ms": 0.0, "judge_ms": None}, "error": None,
    }  # fmt: skip


# ── page ──────────────────────────────────────────────────────────────────────────────────────────────────────


def built(folder: Path) -> tuple[float, Path]:
    """Seconds of CPU that the report of `now` took, and where it is."""
    from pytest_rageval.comparison.baseline import open_side
    from pytest_rageval.config.settings import Settings
    from pytest_rageval.render.html.report_writer import write_report
    from pytest_rageval.runs.reader import StoredRun

    other = open_side(folder, folder / "baseline.json", "before")
    run = StoredRun(folder / "runs" / "now")
    started = time.process_time()
    path = write_report(run, Settings(), folder / "baseline.json", other=other)
    seconds = time.process_time() - started
    if 'id="blocks"' not in path.read_text(encoding="utf-8"):
        raise SystemExit(f"{path}: the runs that are made here are no longer what a run writes; see what the page says")
    return seconds, path


def browser() -> str | None:
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


READY = "() => document.documentElement.dataset.ready === 'yes'"
TURN = """await new Promise(done => {
  const turn = new MessageChannel();
  turn.port1.onmessage = done;
  turn.port2.postMessage(0);
})"""
FILTER = """async () => {
  const box = document.getElementById('filter'), count = document.getElementById('count');
  const times = [];
  const queries = ['outcome:failed', 'token_f1<0.5', '"winter goods"', 'category:factual', 'outcome:passed mrr>0.5'];
  for (const text of queries) {
    for (const round of [0, 1]) {  // the first one inflates what it asks for
      count.textContent = '…';
      const started = performance.now();
      location.hash = '#/cases?q=' + encodeURIComponent(text) + '&round=' + round;
      while (count.textContent === '…') TURN;
      if (round) times.push(performance.now() - started);
    }
  }
  return Math.max(...times);
}"""
OPEN = """async () => {
  const times = [];
  for (const number of [3, 70, 3]) {
    const started = performance.now();
    location.hash = document.querySelectorAll('#list a')[number % 20].hash;
    while (!document.querySelector('#case .case-bar')) TURN;
    times.push(performance.now() - started);
    location.hash = '#/cases';
    while (document.querySelector('#case .case-bar')) await new Promise(done => setTimeout(done, 5));
  }
  return Math.max(...times);
}"""


def opened(path: Path) -> dict[str, float]:
    """Milliseconds until the first rows stand there, of the slowest filter and of opening a case; heap and nodes."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser(), args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(120_000)
        page.add_init_script(
            "new MutationObserver((_, seen) => { if (document.documentElement.dataset.ready) { window.readyAfter = "
            "performance.now(); seen.disconnect(); } }).observe(document, {attributes: true, subtree: true})"
        )
        page.goto(path.as_uri())
        page.wait_for_function("() => window.readyAfter")
        ready = page.evaluate("window.readyAfter")
        nodes = page.evaluate("document.querySelectorAll('*').length")
        opening, filtering = page.evaluate(OPEN.replace("TURN", TURN)), page.evaluate(FILTER.replace("TURN", TURN))
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        heap = session.send("Runtime.getHeapUsage")["usedSize"] / 1e6
        chromium.close()
    return {"ready": ready, "filter": filtering, "open": opening, "heap": heap, "nodes": nodes}


def main(sizes: list[int]) -> None:
    for cases in sizes:
        print(f"{cases:,} cases: {json.dumps(measure_inside('report_page', cases=cases))}", flush=True)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or list(SIZES))
