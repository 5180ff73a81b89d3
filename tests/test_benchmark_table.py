"""The table of the benchmarks: what stands beside our figures, what is claimed of them, and in which order."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

import environments
import judge_modes
import judge_requests
from harness import Figure, Row, Usage
from table import lines, markdown

QUICK, SLOW = Usage(0.1, 10.0, 1.0), Usage(0.1, 10.0, 11.0)


def of(value: float, rounds: int = 5) -> Figure:
    return Figure(value, value, rounds)


def test_a_line_names_the_cheapest_script_and_the_best_of_the_tools():
    rows = [Row("x", "s", of(2), name, figure) for name, figure in
            (("by hand", of(1)), ("asyncio + httpx", of(4)), ("ragas", of(6)), ("deepeval", of(5)))]  # fmt: skip
    (line,) = lines(rows)
    assert (line.floor, line.peer) == (("by hand", of(1)), ("deepeval", of(5)))
    assert "| x | s | 2.00 / 2.00 | by hand 1.00 / 1.00 | 2.00 | deepeval 5.00 / 5.00 | 0.40 |" in markdown(rows)


@pytest.mark.parametrize(
    ("ours", "peer", "verdict"),
    [(Figure(1, 1), of(1), "reached"), (Figure(1, 2), of(1), "unclear"), (Figure(2, 2), of(1), "missed"),
     (Figure(-1, -1), of(1), "unclear")],
)  # fmt: skip
def test_noise_decides_nothing(ours: Figure, peer: Figure, verdict: str):
    (line,) = lines([Row("x", "s", ours, "by hand", peer, ratio_goal=1.5)])
    assert line.verdict == verdict


def test_every_tool_is_pinned_has_a_script_and_is_installed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    commands: list[str] = []
    monkeypatch.setattr(environments, "PLACE", tmp_path)
    monkeypatch.setattr(environments, "_run", lambda command, _: commands.append(command[0]))
    for name in environments.NAMES:
        peer = environments.installed(name)
        assert peer.version[0].isdigit()
        assert Path(peer.command("http://127.0.0.1:1", 1, 1)[1]).is_file()
    assert "npm" in commands
    commands.clear()
    assert [environments.installed(name).name for name in environments.NAMES] == [*environments.NAMES]
    assert commands == []


def test_judging_two_rubrics_is_one_request_of_at_most_eight_thousand_characters(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(judge_requests, "CASES", 2)
    monkeypatch.setattr(judge_requests, "tokens", lambda _: None)
    with judge_requests.served(judge_requests.Counter) as url:
        rows = {cells[0].removeprefix("ours, "): cells[1:3] for cells in judge_requests.our_rows(url)}
    for first in ("faithfulness", "groundedness"):
        requests, characters = rows[f"together: {first} and correctness"]
        assert requests == "1"
        assert int(characters.replace(",", "")) <= 8_000
        assert rows[f"separate: {first} and correctness"][0] == "2"


def test_a_scripted_model_says_the_same_in_both_modes(capsys: pytest.CaptureFixture[str]):
    assert judge_modes.main(["-n", "6"]) == 0
    assert "| groundedness | 6 | 0 | 0 | 1.000 |" in capsys.readouterr().out
