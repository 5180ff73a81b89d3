"""Every fault of an API meets one case of a run: a typed error on that case, and none on the others."""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from typing import Any

import pytest
from fault_catalogue import ANSWERED, ATTEMPT_S, MOST_BYTES, ODD_BUT_GOOD, RETRIES, Fault, faults, odd_but_good
from fault_server import Connection, FaultServer, gives
from project import Project, a_case
from reliability import Tally

TEXT = "Water boils at 100 degrees at sea level."
NATIVE = {"answer": TEXT, "debug": {"retrieved_chunks": [{"rel_path": "notes/water.md"}]}}
MESSAGE = {"role": "assistant", "content": TEXT}
CHAT = {"model": "m-1", "choices": [{"message": MESSAGE, "finish_reason": "stop"}]}
VERDICT = json.dumps({"reasoning": "It says so.", "score": 5})
JUDGED = {"model": "m-1", "choices": [{"message": {"role": "assistant", "content": VERDICT}, "finish_reason": "stop"}]}
KEY = "kq-7Hs92mZxPq41"
OLLAMA = {"model": "m", "message": MESSAGE, "done": True, "done_reason": "stop"}
ANTHROPIC = {"model": "m-1", "content": [{"type": "text", "text": VERDICT}], "stop_reason": "end_turn"}
GOOD = {"http": NATIVE, "openai": CHAT, "ollama": OLLAMA, "judge": JUDGED, "judge of Anthropic's kind": ANTHROPIC}
GOOD_CASES = 12


class FaultyApi(FaultServer):
    """Does to the request of each case what the fault of its name says; requests of other cases get a good reply."""

    def __init__(self, elsewhere: str, good: Any) -> None:
        super().__init__(self._behave)
        self.good = good
        self.faults = {f"case {number:03}": fault for number, fault in enumerate(faults(elsewhere))}
        self.odd = {f"odd {number:02}": name for number, name in enumerate(ODD_BUT_GOOD)}
        self.times: dict[str, list[float]] = defaultdict(list)

    @property
    def cases(self) -> list[str]:
        return [*self.faults, *self.odd, *(f"good {number:02}" for number in range(GOOD_CASES))]

    async def _behave(self, connection: Connection) -> None:
        asked = re.search(r"(?:case|odd|good) \d+", connection.request.body.decode())
        if asked is None:
            await connection.reply(404, b"{}")
            return
        name = asked[0]
        self.times[name].append(connection.request.at)
        fault = self.faults.get(name)
        if fault is not None and not (fault.then_good and len(self.times[name]) > 1):
            await fault.first(connection)
            return
        if name in self.odd:
            await odd_but_good(self.odd[name], self.good)(connection)
            return
        await connection.reply(200, json.dumps(self.good).encode())


AGAIN_FOR_JUDGES = ("reset", "timeout")
"""A judgement that is asked for twice does no harm: a judge is asked again where a system is not."""
STATUSES_AGAIN_FOR_JUDGES = ("status 408", "status 409", "status 425", "status 500")
NO_BYTE_OF_A_REPLY = ("a reset", "a farewell")
"""On a connection kept from an earlier request, a server may have closed it meanwhile: sent once more on a new one."""


def requests_of(fault: Fault, side: str) -> set[int]:
    """How often the request of a case may be received."""
    is_again = fault.kinds in {(kind,) for kind in AGAIN_FOR_JUDGES} or fault.name in STATUSES_AGAIN_FOR_JUDGES
    times = fault.requests
    if side.startswith("judge") and is_again:
        times = RETRIES + 1
    return {times, times + 1} if fault.name in NO_BYTE_OF_A_REPLY else {times}


def unmet(fault: Fault, kind: str | None, times: list[float], expected: set[int]) -> list[str]:
    """What of a fault's row in the table did not hold."""
    found = []
    is_as_expected = kind in fault.kinds if fault.kinds else kind is None
    if not is_as_expected:
        found.append(f"{fault.name}: {kind}, expected {' or '.join(fault.kinds) or 'an answer'}")
    if len(times) not in expected:
        found.append(f"{fault.name}: {len(times)} requests, expected {expected}")
    if len(times) > 1 and times[1] - times[0] < fault.wait_s - 0.01:
        found.append(f"{fault.name}: asked again after {times[1] - times[0]:.2f} s, expected {fault.wait_s} s")
    return found


async def never(connection: Connection) -> None:
    raise AssertionError("no fault")


def unmet_of(server: FaultyApi, project: Project, side: str) -> list[str]:
    """What did not hold, of all cases."""
    found = []
    records = project.records()
    assert len(records) == len(server.cases)
    for name, record in records.items():
        kind = record["error"] and record["error"]["kind"]
        fault = server.faults.get(name)
        if fault is None:
            fault = Fault(server.odd.get(name, name), ANSWERED, 1, never)
        kind = kind and kind.removeprefix("judge_")
        found += unmet(fault, kind, server.times[name], requests_of(fault, side))
    return found


OPTIONS = f"""
timeout = {ATTEMPT_S}
retries = {RETRIES}
max_response_bytes = {MOST_BYTES}
concurrency = 200
judge_concurrency = 200
judge_cache = "off"
"""
NO_GATE_ON_CHUNKS = '[tool.rageval.gates]\ncase = ["recall_any off"]'
JUDGED_ALONE = """
[tool.rageval.metrics]
enabled = ["correctness"]
[tool.rageval.gates]
case = ["correctness >= 1"]
"""
TABLES = {
    "http": ('target = "{url}"', NO_GATE_ON_CHUNKS),
    "openai": ('target = "openai:m@{url}"', NO_GATE_ON_CHUNKS),
    "ollama": ('target = "ollama:m@{url}"', NO_GATE_ON_CHUNKS),
    "judge": ('target = "sure:answer"\njudge = "openai:m-2026-01-01@{url}"', JUDGED_ALONE),
    "judge of Anthropic's kind": ('target = "sure:answer"\njudge = "anthropic:m-2026-01-01@{url}"', JUDGED_ALONE),
}
RARELY = ("ollama", "judge of Anthropic's kind")
SIDES = [pytest.param(side, marks=pytest.mark.torture if side in RARELY else []) for side in TABLES]
SURE_BOT = f"def answer(question):\n    return {{'answer': {TEXT!r}, 'abstained': False}}\n"
LONGEST_S = 60
"""A run of these faults takes 3 s; what waits for a fault without end takes minutes."""


@pytest.mark.reliability("API faults", "each fault on one case of a run, by contract")
@pytest.mark.parametrize("side", SIDES)
def test_a_fault_is_a_typed_error_on_its_case_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch, tally: Tally, side: str
):
    monkeypatch.setenv("RAGEVAL_TARGET_TOKEN", KEY)
    monkeypatch.setenv("RAGEVAL_JUDGE_TOKEN", KEY)
    with FaultServer(gives(NATIVE)) as elsewhere:
        with FaultyApi(elsewhere.url, GOOD[side]) as server:
            project.write("sure.py", SURE_BOT)
            project.cases(a_case(name, f"What is the boiling point of water? ({name})") for name in server.cases)
            system, gates = TABLES[side]
            project.configure(system.format(url=server.url) + OPTIONS, gates)
            tally.tried(len(server.cases))
            began = time.monotonic()
            project.run("-q", "--tb=no")
            took = time.monotonic() - began
        assert elsewhere.requests == [], "a redirect was followed"
    assert "\n".join(unmet_of(server, project, side)) == ""
    assert took < LONGEST_S
