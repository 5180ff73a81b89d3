"""Texts that attack a page, a run and a site full of them, and secrets planted in a run."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from labelling import FILE, label_project
from project import Project
from stored_pages import page_between, store_fallen
from stored_runs import PAGE_PLAN, a_chunk, a_full_record, a_row, an_observation, some_cases, store
from web_app import WebApp, sent_by

from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.check.calibration_record import CALIBRATIONS
from pytest_rageval.model import NOWHERE, EvalCase
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.runs.records.result_line import to_line
from pytest_rageval.runs.row import Row
from pytest_rageval.text import printable
from pytest_rageval.web.jobs.job import ENDED, JOB, LOG, Job
from pytest_rageval.web.jobs.pairwise_jobs import ORDER, PairwiseOrder
from pytest_rageval.web.rendering import path_to
from pytest_rageval.web.versions.agent import Agent
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetAbout, DatasetStore

SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><b>"
MARKDOWN = "| a | b |\n# Title\n[link](javascript:alert(1)) ![i](http://x/i.png) `code` **bold** <h1>x</h1> | x"
TERMINAL = (
    "\x1b[31mred\x1b]8;;http://evil\x07link\x1b]8;;\x07 \x9b2J bell\x07 back\x08 \u202egnitirw\u2066 \x00nul \x85\u2028"
)
COMMANDS = (
    "::error file=a.py::owned\n  ::set-output name=x::y\n##[error]owned ##vso[task.setvariable variable=x]y"
    " ##teamcity[setParameter name='x' value='y']"
)
TEMPLATE = "{{ 7*7 }} {% raise %} ${7*7} %(name)s %s {0} {question} #{7*7}"
FORMULA = '=HYPERLINK("http://evil")'
HOSTILE = {
    "script": SCRIPT, "markdown": MARKDOWN, "terminal": TERMINAL, "commands": COMMANDS, "template": TEMPLATE,
    "formula": FORMULA,
}  # fmt: skip
"""One text for each of what shows texts: pages, Markdown, terminals, CI services, templates, spreadsheets."""
RUN = "top.hacked=(top.hacked||0)+1"
_TAGS = (
    f"<script>{RUN}</script>", f"</script><script>{RUN}</script>", f"</style><script>{RUN}</script>",
    f"</title><script>{RUN}</script>", f"</textarea><script>{RUN}</script>", f"</template><script>{RUN}</script>",
    f"--><script>{RUN}</script>", f"]]><script>{RUN}</script>", f"<ScRiPt>{RUN}</sCrIpT>", f"<script/x>{RUN}</script>",
    f"<script>{RUN}//",
    f"<<script>{RUN}</script>", f"<script type=module>{RUN}</script>",
    f"<script src=data:text/javascript,{RUN}></script>", "<script src=//evil.example/x.js></script>",
)  # fmt: skip
_HANDLERS = (
    f"<img src=x onerror={RUN}>", f"<img/src=x/onerror={RUN}>", f"<svg onload={RUN}>", f"<svg/onload={RUN}>",
    f"<body onload={RUN}>", f"<details open ontoggle={RUN}>x</details>", f"<video src=x onerror={RUN}></video>",
    f"<audio src=x onerror={RUN}>", f"<input autofocus onfocus={RUN}>", f"<select autofocus onfocus={RUN}></select>",
    f"<marquee onstart={RUN}>x</marquee>", f"<div onpointerenter={RUN}>x</div>", f"<object data=x onerror={RUN}>",
    f'" onmouseover="{RUN}', f"' onmouseover='{RUN}", f"x onmouseover={RUN} ", f'"><img src=x onerror={RUN}>',
    f"'><svg onload={RUN}>", f"`><img src=x onerror={RUN}>",
    f"<style>@keyframes x{{}}</style><b onanimationstart={RUN}>",
    f"<math><mi xlink:href=javascript:{RUN}>x</mi></math>", f"<svg><animate onbegin={RUN} attributeName=x dur=1s>",
    f"<svg><script>{RUN}</script></svg>", f"<form><button formaction=javascript:{RUN}>x</button></form>",
)  # fmt: skip
_LOADS = (
    "<img src=http://evil.example/x.png>", "<link rel=stylesheet href=http://evil.example/x.css>",
    "<style>@import 'http://evil.example/x.css'</style>", "<iframe src=http://evil.example></iframe>",
    f"<iframe srcdoc='<script>{RUN}</script>'></iframe>", f"<a href=javascript:{RUN}>x</a>",
    f"[x](javascript:{RUN})", f"<base href=http://evil.example/><a href={RUN}>", "<meta http-equiv=refresh content=0>",
    f"<embed src=data:text/html,<script>{RUN}</script>>", "<b style='background:url(http://evil.example/x)'>x</b>",
)  # fmt: skip
_OTHERS = (
    "{{ 7*7 }}{% raise %}", "${7*7} #{7*7} %(x)s {0}", "\u202egnitirw\u2066", "\x00nul \x1b[31mred",
    "&lt;b&gt; &amp;amp;",
    "+ADw-script+AD4-", "a/b::c?d#e&f=g", "a\u2028b\u2029c",
)  # fmt: skip
PAYLOADS = (*_TAGS, *_HANDLERS, *_LOADS, *_OTHERS)
JUDGE = " ".join(PAYLOADS)


def hostile_rows(outcome: str) -> list[Row]:
    """A case a payload, which stands in each of its fields."""
    return [
        a_row(
            f"evalcases/{text[:40]}.jsonl::{number} {text}", recall_any_at_5=float(outcome == "passed"),
            outcome=outcome,
            failed=(("recall_any@5", text),) if outcome == "failed" else (), message=text,
            groups={"category": (text,), "tag": (text, f"t{text}"), "difficulty": (text,), "domain": (text,),
                    "answerable": ("answerable",)},
        )
        for number, text in enumerate(PAYLOADS)
    ]  # fmt: skip


def hostile_record(row: Row, text: str) -> dict[str, Any]:
    return a_full_record(
        row, question=f"question {text}", answer=f"answer {text}", reason=text, difficulty=text, domain=text,
        retrieved_chunks=[a_chunk(1, text, [0], heading_path=text, text=f"chunk {text}", chunk_id=text)],
        groundedness={"score": 1.0, "reasoning": text, "model": text, "heuristic": True,
                      "supported_claims": [text], "unsupported_claims": [f"claim {text}"]},
        error={"kind": "exception", "message": f"error {text}", "raw": text}, skipped_metrics={"mrr": text},
        trace={text: [text]}, source={"file": text, "line": 1},
    )  # fmt: skip


def hostile_observation(row: Row, text: str) -> dict[str, Any]:
    """A line of observations.jsonl, with what a judge says of a single claim."""
    supports = [{"rel_path": "a.md", "snippets": [text]}, {"rel_path": f"gold {text}"}]
    line = an_observation(row, f"question {text}", answer=text, key_facts=[text], supports=supports)
    claim = {"claim": f"claim {text}", "verdict": "contradicted", "passage": 1, "sentence": f"sentence {text}"}
    return line | {"k": 5, "judgements": {"groundedness": {"extra": {"evidence": [claim]}}}}


def hostile_run(reports: Path, run_id: str, outcome: str) -> Path:
    rows = hostile_rows(outcome)
    records = {row.key: hostile_record(row, text) for row, text in zip(rows, PAYLOADS, strict=True)}
    settings = {f"setting {text}": f"{run_id} {text}" for text in PAYLOADS}
    config = {"params": settings, "target": PAYLOADS[0], "judge": {"model": JUDGE}}
    folder = store(reports, run_id, rows, plan=PAGE_PLAN, records=records, config=config, description=JUDGE)
    lines = [to_line(hostile_observation(row, text)) for row, text in zip(rows, PAYLOADS, strict=True)]
    (folder / "observations.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    if run_id == "alone":  # a comparison refuses names that no metric can have
        metrics["metrics"] |= dict.fromkeys(PAYLOADS, metrics["metrics"]["recall_any@5"])
    metrics["judge"] = {"model": JUDGE, "heuristic": True, "prompt_versions": {PAYLOADS[0]: PAYLOADS[1]}}
    metrics["verdict"] = {"problems": dict(zip(PAYLOADS, PAYLOADS, strict=True))}
    metrics["volatile"]["cost"]["target_usage"] = dict.fromkeys(PAYLOADS, 1.0)
    (folder / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
    calibration = {"calibrated": JUDGE, "labels": f"labels {JUDGE}", "gate": f"gate {JUDGE}", "answers": 3,
                   "prompt_versions": PAYLOADS, "verdict": f"verdict {JUDGE}", "agreement": 0.5, "interval": [0.1, 0.9],
                   "cohens_kappa": None}  # fmt: skip
    (reports / CALIBRATIONS).parent.mkdir(exist_ok=True)
    content = {JUDGE: {f"metric {text}": calibration for text in PAYLOADS}}
    (reports / CALIBRATIONS).write_text(json.dumps(content), encoding="utf-8")
    return folder


def hostile_comparison(reports: Path) -> PageRun:
    """Two such runs compared, with metrics of hostile names on both sides, which no run of ours could have."""
    for run_id, outcome in (("before", "passed"), ("now", "failed")):
        hostile_run(reports, run_id, outcome)
    page = page_between(reports, "before", "now")
    assert page.comparison is not None
    assert page.before is not None
    for side in (page.before, page.side):
        side.metrics["metrics"].update(dict.fromkeys(PAYLOADS, side.metrics["metrics"]["recall_any@5"]))
    moved = dict.fromkeys(PAYLOADS, page.comparison["metrics"]["recall_any@5"])
    content = {**page.comparison, "metrics": {**page.comparison["metrics"], **moved}}
    return replace(page, comparison=content)


TEXTS = [text for text in PAYLOADS if "\x00" not in text]
"""What a file can hold."""
ALL = " ".join(TEXTS)
JOB_ID = "20261122_100000"


def write_job(folder: Path) -> None:
    """A job that failed, with attacks in all that a person or a system wrote."""
    folder.mkdir(parents=True)
    job = Job(
        id=folder.name, agent=ALL, agent_version=1, dataset=ALL, dataset_version=1, source="connector", description=ALL,
        created="2026-11-22T10:00:00+00:00", cases=2, arguments=(),
    )  # fmt: skip
    (folder / JOB).write_text(job.model_dump_json())
    (folder / ENDED).write_text('{"exit_code": 4}')
    (folder / LOG).write_text("".join(f"ERROR: {printable(text)}\n" for text in PAYLOADS), encoding="utf-8")


def write_comparison(folder: Path) -> None:
    """A pairwise comparison that failed, with attacks in its log and in the name of its judge."""
    folder.mkdir(parents=True)
    order = PairwiseOrder(id=folder.name, before="before", after="now", judge=ALL, created="2026-11-22T10:00:00+00:00")
    (folder / ORDER).write_text(order.model_dump_json())
    (folder / ENDED).write_text('{"exit_code": 1}')
    (folder / LOG).write_text("".join(f"ERROR: {printable(text)}\n" for text in PAYLOADS), encoding="utf-8")


def hostile_versions(data: Path) -> None:
    """Two versions of an agent and of a dataset, with attacks in every field."""
    agents, datasets = AgentStore(data), DatasetStore(data)
    for number in (0, 1):
        text = " ".join(TEXTS[number:])
        agent = Agent(
            name=text[:80], description=text, tags=tuple(TEXTS), target=text, llm=text, params={text: text},
            headers={text: text}, gates=(text,), judge=text, prompts={"reference_match": text},
            more={text: text}, thresholds={"reference_match": 0.7},
        )  # fmt: skip
        agents.save("hostile", agent, text, number)
        records = [{"id": f"{n} {text}", "question": text[number:] or "q", "reference": text, "category": text,
                    "tags": [text], "metadata": {text: text}} for n, text in enumerate(TEXTS)]  # fmt: skip
        cases = [case_from_record(record, NOWHERE)[0] for record in records]
        about = DatasetAbout(name=text[:80], description=text, tags=tuple(TEXTS), origin=text)
        datasets.save("hostile", about, cases, text, number)
    agents.save("plain", Agent(name=ALL, target="demo", description=ALL), ALL, 0)
    datasets.save("plain", DatasetAbout(name=ALL), [EvalCase("one", ALL)], ALL, 0)


def hostile_site(root: Path) -> Path:
    """The folder of a project with something on every page."""
    file = label_project(root)
    folder = file.parents[1]
    case = {"id": "one", "question": ALL, "category": ALL, "tags": TEXTS}
    file.write_text(json.dumps(case) + "\n" + json.dumps(case | {"id": "two"}) + "\n")
    (folder / "notes" / "<b onclick=x>.md").write_text(f"# cream {ALL}\n\n" + "\n".join(TEXTS) + "\n", encoding="utf-8")
    reports = folder / "reports"
    store_fallen(reports, failing=20, cases=60)
    hostile_run(reports, "alone", "failed")
    write_job(folder / "data" / "jobs" / JOB_ID)
    write_comparison(folder / "data" / "pairwise" / JOB_ID)
    hostile_versions(folder / "data")
    return folder


def pages_of(app: WebApp) -> dict[str, list[str]]:
    """Addresses of every page of a hostile site, by the route that they are of."""
    now = path_to("runs", "now", "cases", some_cases(1, cases=1)[0].key)
    label_dataset(app)
    alone = path_to("runs", "alone", "cases", f"evalcases/{PAYLOADS[0][:40]}.jsonl::0 {PAYLOADS[0]}")
    return {
        "/": ["/"], "/running": ["/running"], "/login": ["/login"],
        "/runs": ["/runs", path_to("runs", text=ALL[:300])],
        "/runs/{run_id}": ["/runs/now", "/runs/alone", "/runs/killed", path_to("runs", "now", q=ALL[:300]), "/runs/no"],
        "/runs/{run_id}/sections": ["/runs/now/sections", "/runs/alone/sections?against=now"],
        "/runs/{run_id}/cases/{key:case_key}": [now, f"{now}?against=before", alone],
        "/compare": ["/compare", "/compare?a=before&b=now", path_to("compare", a=ALL[:300], b="now")],
        "/compare/answers": ["/compare/answers?a=before&b=now", "/compare/answers?a=now&b=alone&show=different"],
        "/compare/pairwise": ["/compare/pairwise?a=before&b=now", path_to("compare", "pairwise", a=ALL[:300], b="now")],
        "/compare/pairwise/{name}": [f"/compare/pairwise/{JOB_ID}"],
        "/history": ["/history", path_to("history", metric=ALL[:300], agent=ALL[:300])],
        "/agents": ["/agents", path_to("agents", q=ALL)], "/agents/new": ["/agents/new"],
        "/agents/{slug}": ["/agents/hostile"], "/agents/{slug}/edit": ["/agents/hostile/edit"],
        "/agents/{slug}/versions/{number}": ["/agents/hostile/versions/1"],
        "/agents/{slug}/diff": ["/agents/hostile/diff"],
        "/datasets": ["/datasets", path_to("datasets", q=ALL)], "/datasets/new": ["/datasets/new?dataset=hostile"],
        "/datasets/{slug}": ["/datasets/hostile", path_to("datasets", "hostile", q=ALL, category=ALL)],
        "/datasets/{slug}/versions/{number}": ["/datasets/hostile/versions/1"],
        "/datasets/{slug}/diff": ["/datasets/hostile/diff"],
        "/datasets/{slug}/versions/{number}/audit": ["/datasets/hostile/versions/2/audit"],
        "/datasets/{slug}/versions/{number}/cases/{position}": [
            f"/datasets/hostile/versions/2/cases/{position}" for position in ("3", "new")
        ],
        "/datasets/uploads/{upload_id}": [waiting_dataset(app), waiting_dataset(app, "answer\n")],
        "/new-run": ["/new-run", path_to("new-run", agent=ALL, dataset=ALL, description=ALL)],
        "/new-run/answers/{upload_id}": [waiting_answers(app)],
        "/jobs/{job_id}": [f"/jobs/{JOB_ID}"],
        "/label": ["/label"], "/health": ["/health"],
        "/label/cases": [path_to("label", "cases", file=FILE, case="one", row=1),
                         "/label/cases?file=evalcases/shop.drafts.jsonl", "/label/cases?dataset=plain"],
    }  # fmt: skip


def waiting_dataset(app: WebApp, header: str = "question,reference,answer,tag\n") -> str:
    """The address of an upload whose texts, columns and name attack."""
    rows = "".join(f'"{quoted}","{quoted}",x,x\n' for quoted in (text.replace('"', '""') for text in TEXTS))
    name = f"{TEXTS[15]}.csv"
    response = app.post("/datasets/uploads", files={"cases": (name, io.BytesIO((header + rows).encode()))})
    return str(response.headers["location"])


def label_dataset(app: WebApp) -> None:
    """Open the next version of a dataset for labels."""
    page = app.page("/datasets/plain")
    if "takes labels" not in page and "Labels go into" not in page:
        address = "/datasets/plain/label"
        assert app.post(address, sent_by(page, address)).status_code == 303


def waiting_answers(app: WebApp) -> str:
    answers = json.dumps({"id": "one", "answer": ALL, "model_name": ALL}).encode()
    files = {"answers": ('"><img src=x onerror=top.hacked=1>.jsonl', answers, "application/json")}
    chosen = {"agent": "plain/1", "dataset": "plain/1", "source": "uploaded answers", "description": ALL[:400]}
    response = app.post("/new-run", chosen, files=files)
    assert response.status_code == 303, response.text
    return str(response.headers["location"])


CORE = "Zq7Xw9Kp3Lm5"
"""Stands in every secret here: found in whatever spelling the rest of it has."""
TARGET_TOKEN = f"tt+{CORE}/target=="
JUDGE_TOKEN = f"jt+{CORE}/judge=="
HEADER_KEY = f"hk.{CORE}&header"
COOKIE = f"session={CORE}-cookie"
PASSWORD = f"pw-{CORE}-url"
QUERY_KEY = f"qk-{CORE}-query"
PARAM = f"pa'{CORE}<param>"
BOT_KEY = f"bk_{CORE}_of_the_bot"
ENVIRONMENT = {
    "RAGEVAL_TARGET_TOKEN": TARGET_TOKEN,
    "RAGEVAL_JUDGE_TOKEN": JUDGE_TOKEN,
    "OPENAI_API_KEY": f"sk-{CORE}-openai",
    "ANTHROPIC_API_KEY": f"sk-ant-{CORE}",
    "GATEWAY": HEADER_KEY,
    "BOT_API_KEY": BOT_KEY,
}
TRACES = (CORE, base64.b64encode(f"ann:{PASSWORD}".encode()).decode()[:16], "\\u005a")
WRITTEN_HERE = {"pyproject.toml", "bot.py", "conftest.py"}
REPORTS = [
    "-v",
    "--junitxml",
    "junit.xml",
    "--html",
    "report.html",
    "--self-contained-html",
    "--rageval-store-full-text",
]


def leaks(project: Project, *results: pytest.RunResult, traces: Sequence[str] = TRACES) -> list[str]:
    """Where a trace of a secret stands: files below the project, and lines on the screen."""
    found = []
    for path in project.path.rglob("*"):
        if path.is_file() and path.name not in WRITTEN_HERE:
            content = path.read_bytes()
            found += [
                f"{path.relative_to(project.path)}: {_around(content, one)!r}"
                for one in traces
                if one.encode() in content
            ]
    for result in results:
        found += [line for line in [*result.outlines, *result.errlines] if any(one in line for one in traces)]
    return found


def _around(content: bytes, trace: str) -> bytes:
    at = content.index(trace.encode())
    return content[max(0, at - 60) : at + 40]
