"""Texts that attack a page: each would run a script, load something or break what is around it; a run full of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from page_states import PLAN, a_full_record, an_observation, page_between
from stored_pair import a_chunk, store
from two_runs import a_row

from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.runs.records import to_line
from pytest_rageval.runs.row import Row
from pytest_rageval.tools.calibration_record import CALIBRATIONS

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
    folder = store(reports, run_id, rows, plan=PLAN, records=records, config=config, description=JUDGE)
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
