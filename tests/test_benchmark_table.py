"""The table of the benchmarks: what stands beside our figures, what is claimed of them, and in which order."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

import environments
import judge_modes
import judge_requests
import run
from harness import Figure, Row, Usage, beside_peers
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


def test_a_tool_that_fails_is_left_out_and_a_slow_one_runs_twice():
    runs: list[str] = []

    def measured(name: str, side: Usage | None) -> Usage:
        runs.append(name)
        if side is None:
            raise RuntimeError("exit code 1:\nno module named x")
        return side

    sides = {"ours": SLOW, "slow": SLOW, "quick": QUICK, "broken": None}
    usages, failures = beside_peers(5, sides, measured, {"slow", "quick", "broken"})
    assert {name: len(each) for name, each in usages.items()} == {"ours": 5, "slow": 2, "quick": 5}
    assert failures == {"broken": "fails: no module named x"}
    assert runs.count("broken") == 1
    with pytest.raises(RuntimeError, match="no module"):
        beside_peers(5, {"ours": None}, measured, {"slow"})


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


@pytest.mark.child_process
def test_a_tool_that_cannot_be_installed_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(environments, "PLACE", tmp_path)
    monkeypatch.setattr(environments.sys, "executable", "no-such-python")
    for _ in range(2):
        with pytest.raises(environments.CannotBeInstalled, match="no-such-python"):
            environments.installed("ragas")


def test_the_table_is_written_between_its_marks_and_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    page = tmp_path / "performance.md"
    monkeypatch.setattr(run, "PAGE", page)
    page.write_text(f"before\n{run.BEGIN}\nold\n{run.END}\nafter\n", encoding="utf-8")
    run._write("new\n")
    assert page.read_text(encoding="utf-8") == f"before\n{run.BEGIN}\nnew\n{run.END}\nafter\n"
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(SystemExit, match="the marks"):
        run._write("new\n")


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
