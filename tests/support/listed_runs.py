"""Runs of two agents and of pytest in every state, as lists in the browser show them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kept_runs import a_result, a_run, an_error, at, rewrite
from page_states import some_cases, store_full
from web_app import WebApp


def updated(**changed: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content.update(changed)


def origin(agent: str, version: int, dataset: str = "products", source: str = "connector") -> Mapping[str, Any]:
    return {"agent": agent, "agent_version": version, "dataset": dataset, "dataset_version": 2, "source": source}


def store_project(root: Path) -> Path:
    """Runs of two agents and of pytest, in every state; the folder of reports."""
    reports = root / "reports"
    for number in range(3):
        folder = store_full(reports, f"shop-{number}", some_cases(2 * number), description=f"try {number}")
        rewrite(folder / "config.json", updated(begun=at(number), origin=origin("shop-bot", number + 1), k=5 - number))
        rewrite(folder / "metrics.json", lambda metrics, n=number: metrics["volatile"].update(timestamp=at(n)))
    a_run(
        reports,
        "faq-0",
        a_result("a"),
        changed={"begun": at(4), "origin": origin("faq-bot", 1, "faq", "uploaded answers")},
        ended=at(5),
    )
    a_run(reports, "plain", a_result("a"), an_error("b", "no answer"), changed={"begun": at(6)}, ended=at(7))
    a_run(reports, "stopped", a_result("a"), is_finished=False, changed={"begun": at(8)})
    broken = a_run(reports, "broken", changed={"begun": at(9)})
    (broken / "metrics.json").write_text("{")
    return reports


def indexed(app: WebApp) -> None:
    """Wait until all run folders are read."""
    while "Reading run folders" in app.page("/runs"):
        time.sleep(0.1)
