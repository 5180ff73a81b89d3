"""`rageval sweep` as a user meets it: what is asked, what is derived, what is recommended."""

from __future__ import annotations

import json
import signal
import subprocess
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from fault_server import FaultServer, gives
from processes import PATIENCE_S, wait_until
from project import Project, lines_with
from scored_bot import ScoredBot

CASES = 20
GRID = ("--grid", "min_score=.2,.4,.6", "--grid", "k=1,5")


@pytest.fixture
def bot(project: Project) -> ScoredBot:
    return ScoredBot(project)


def test_points_that_differ_in_cuts_alone_are_cut_from_one_pass(bot: ScoredBot):
    bot.sweep(*GRID)
    points = bot.results["points"]
    assert len(points) == 6
    # The default, the pass, the probe of each case, and the best point, unless it is the pass.
    assert len(bot.calls) == 4 * CASES == bot.results["calls"]["asked"]
    assert bot.results["calls"] == {"asked": 80, "all_points": 140, "saved": 60}
    assert sorted(point["how"] for point in points) == ["derived"] * 4 + ["measured"] * 2


def test_derived_points_come_to_what_asking_comes_to(bot: ScoredBot):
    bot.sweep(*GRID)
    derived = {json.dumps(point["params"], sort_keys=True): point for point in bot.results["points"]}
    for written, point in derived.items():
        params = json.loads(written)
        bot.sweep("--grid", f"min_score={params['min_score']}", "--grid", f"k={params['k']}")
        (real,) = bot.results["points"]
        assert real["how"] == "measured"
        assert {name: real[name] for name in ("recall", "mrr", "negative_accuracy", "score", "n")} == {
            name: point[name] for name in ("recall", "mrr", "negative_accuracy", "score", "n")
        }


def test_the_score_weighs_recall_negative_accuracy_and_rank(bot: ScoredBot):
    bot.sweep(*GRID)
    best = bot.results["recommended"]
    # At .6 nothing comes for the negative cases, and all golds still do: half of them at rank 1, six at rank 3.
    assert best["params"] == {"min_score": 0.6, "k": 5}
    assert (best["recall"], best["negative_accuracy"]) == (1.0, 1.0)
    assert best["mrr"] == pytest.approx((8 + 6 / 3) / 14)
    assert best["score"] == pytest.approx(0.5 + 0.3 + 0.2 * best["mrr"])
    assert best["n"] == {"recall": 14, "negative_accuracy": 6, "mrr": 14}
    bot.sweep(*GRID, "--weights", "negative_accuracy=1,recall=1")
    assert bot.results["recommended"]["score"] == pytest.approx(1.0)


def test_the_best_point_and_the_default_are_stored_runs(project: Project, bot: ScoredBot):
    output = bot.sweep(*GRID)
    ids = {run.name for run in project.runs}
    results = bot.results
    assert {results["recommended"]["run"], results["default"]["run"]} <= ids
    assert len(ids) == 3
    assert results["default"]["params"] == {}
    shown = project.rageval("runs", "show", results["recommended"]["run"])
    assert shown.ret == 0
    assert "better than the default: " in output
    assert results["difference"]["distinguishable"] is True


def test_the_lines_to_paste_make_the_best_point_the_default(project: Project, bot: ScoredBot):
    output = bot.sweep(*GRID, "--grid", "style=plain")
    pasted = output.partition("paste into pyproject.toml:\n")[2]
    assert tomllib.loads(pasted) == {"tool": {"rageval": {"k": 5, "params": {"style": "plain", "min_score": 0.6}}}}
    project.write("pyproject.toml", pasted.replace("[tool.rageval]", '[tool.rageval]\ntarget = "scored:answer"', 1))
    asked = len(bot.calls)
    project.run()
    assert {"min_score": 0.6, "style": "plain"}.items() <= bot.calls[asked].items()


def test_cases_that_come_otherwise_than_cut_are_asked_at_every_point(project: Project):
    bot = ScoredBot(project, "second look")
    output = bot.sweep(*GRID)
    assert (
        "results other than predicted from the widest point in 1 case of 20, so these were asked at every point"
        in output
    )
    assert "evalcases/a.jsonl::odd" in output
    assert {point["asked"] for point in bot.results["points"] if point["how"] == "derived"} == {1}
    odd = {(call.get("min_score"), call["k"]) for call in bot.calls if "odd" in call["question"]}
    assert {(least, k) for least in (0.2, 0.4, 0.6) for k in (1, 5)} <= odd


def test_a_system_whose_parameters_are_no_cuts_is_asked_at_every_point(project: Project):
    bot = ScoredBot(project, "always second look")
    output = bot.sweep(*GRID)
    assert " of 20, so every point of their group was asked" in output
    assert {point["how"] for point in bot.results["points"]} == {"measured"}
    assert len(project.runs) == 7


@pytest.mark.parametrize("mode", ["no scores"])
def test_without_scores_every_threshold_is_asked(project: Project, mode: str):
    bot = ScoredBot(project, mode)
    output = bot.sweep(*GRID)
    assert "every point was asked: chunks come without score_final, as for odd" in output
    assert len(bot.calls) == 7 * CASES
    bot.sweep("--grid", "k=1,3,5")
    assert {point["how"] for point in bot.results["points"]} == {"measured", "derived"}


def test_another_index_is_needed_only_where_its_parameters_change(bot: ScoredBot):
    bot.sweep(*GRID, "--grid", "chunk_max_tokens=400,200")
    indexes = [call.get("chunk_max_tokens") for call in bot.calls]
    changes = sum(before != after for before, after in pairwise(indexes))
    assert changes <= 3, "the default, each of the two once, and the best point"
    assert bot.results["indexings"] == changes + 1


def test_the_other_half_confirms(bot: ScoredBot):
    bot.sweep(*GRID, "--confirm")
    results = bot.results
    assert results["choosing"] + results["confirming"] == CASES
    assert results["difference"]["n"] <= results["confirming"]
    assert results["difference"]["on"] == "the other half of the cases"
    assert results["recommended"]["n"]["recall"] + results["difference"]["recommended"]["n"]["recall"] == 14


def test_what_is_no_better_than_chance_is_said_so(bot: ScoredBot):
    output = bot.sweep("--grid", "k=5,6")
    assert "not distinguishable from the default: " in output
    assert "to try it all the same, in pyproject.toml:" in output
    assert bot.results["recommended"]["params"] == {"k": 5}, "of equal points the one with fewer chunks"
    assert "\nthe default scored higher: keep what you have\n" in bot.sweep("--grid", "min_score=.99")


def test_a_sample_is_the_same_for_the_same_seed(bot: ScoredBot):

    def asked(*arguments: str) -> set[str]:
        before = len(bot.calls)
        bot.sweep("--grid", "k=1,5", "--sample", "8", *arguments)
        return {call["question"] for call in bot.calls[before:]}

    first = asked()
    assert len(first) == 8
    assert asked("--seed", "0") == first
    assert asked("--seed", "1") != first


def test_a_sweep_that_was_interrupted_goes_on(project: Project, bot: ScoredBot):
    bot.sweep(*GRID, "--confirm")
    whole = bot.results
    run = project.path / "reports" / "runs" / whole["recommended"]["run"]
    lines = (run / "results.jsonl").read_text().splitlines(keepends=True)
    (run / "results.jsonl").write_text("".join(lines[:5]))
    (run / "metrics.json").unlink()
    asked = len(bot.calls)
    bot.sweep("--resume", "latest")
    # What the probe found is kept, and so are the observations of the best point's 20 cases.
    assert len(bot.calls) == asked
    resumed = bot.results
    for changing in ("calls", "indexings"):
        del whole[changing], resumed[changing]
    assert resumed == whole


def test_another_target_or_other_cases_do_not_go_on_with_a_sweep(project: Project, bot: ScoredBot):
    bot.sweep("--grid", "k=1,5")
    assert "was begun with another target" in bot.sweep("--resume", "latest", "--target", "bot:answer", code=2)
    assert "was begun with other settings" in bot.sweep("--resume", "latest", "--param", "style=plain", code=2)
    project.cases([{"id": "new", "question": "What about new?"}, {"id": "b", "question": "And b?"}])
    assert "was begun with other cases" in bot.sweep("--resume", "latest", code=2)
    assert "leave --grid out" in bot.sweep("--resume", "latest", "--grid", "k=1", code=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--grid", "k"), "--grid: 'k' is not NAME=V1,V2,…, as in min_score=0.2,0.3,0.4"),
        (("--grid", "question=a,b"), "--grid: question cannot be swept: it is the case's"),
        (("--grid", "k="), "--grid: k has no values; write some, as in k=0.2,0.3"),
        (("--grid", "k=1", "--grid", "k=2"), "--grid: k is given twice; write all of its values in one"),
        (("--grid", "k=0"), "--grid: k is 0 (a number), expected a whole number from 1 to 10,000"),
        (("--grid", "k=many"), "--grid: k is 'many'"),
        (("--weights", "recal=1"), "--weights: 'recal' is no part of the score; did you mean 'recall'?"),
        (("--weights", "recall=x"), "--weights: recall is 'x', expected a number of 0 or more"),
        (("--weights", "recall=0"), "--weights: all are 0; give one of them more"),
        (("--quick", "--grid", "k=1"), "--quick is a grid of its own"),
        (("--resume", "sweep_1"), "there is no sweep 'sweep_1'"),
        (("--target", "nowhere:f"), "nowhere"),
        (("--grid", "a=" + ",".join(map(str, range(101))), "--grid", "b=" + ",".join(map(str, range(101)))),
         "10,201 points are more than 10,000"),
    ],
)  # fmt: skip
def test_bad_input_gets_a_line_and_asks_nothing(
    project: Project, bot: ScoredBot, arguments: tuple[str, ...], message: str
):
    assert message in bot.sweep(*arguments, code=2)
    assert not bot.calls
    assert not project.runs
    assert not (project.path / "reports" / "sweeps").exists()


def test_points_that_end_in_errors_are_left_out_and_said(bot: ScoredBot):
    output = bot.sweep("--grid", "fails=true,false", "--grid", "k=1,5")
    assert "fails true, k 5 and its group left out: all cases ended in errors" in output
    assert "no answer changed with fails" not in output
    assert [point["params"]["fails"] for point in bot.results["points"]] == [False, False]


def test_parameters_that_a_function_cannot_be_given_are_refused_before_the_first_question(
    project: Project, bot: ScoredBot
):
    project.write("alone.py", "from scored import answer\n\ndef ask(question): raise SystemExit(question)\n")
    output = bot.sweep("--grid", "min_score=.2,.4", "--grid", "k=1,5", "--target", "alone:ask", code=2)
    assert "--grid: alone:ask takes a question alone and cannot be given min_score; add a parameter named " in output
    assert not project.runs


def test_a_parameter_without_a_place_in_a_mapping_is_sent_at_the_top_level_as_in_a_run(project: Project):
    project.cases(
        {"id": name, "question": f"{name}?", "gold_supports": [{"rel_path": "a.md"}]} for name in ("one", "two")
    )
    with FaultServer(gives({"answer": "blue", "hits": [{"path": "a.md"}]})) as server:
        response = '{ answer = "answer", retrieved_chunks = { each = "hits", rel_path = "path" } }'
        mapping = f'{{ request = {{ q = "{{question}}", n = "{{params.top}}" }}, response = {response} }}'
        project.configure(f'target = {{ url = "{server.url}/ask", mapping = {mapping} }}')
        ran = project.rageval("sweep", "--grid", "top=1,2", "--grid", "threshold=.3,.7")
        bodies = [request.json for request in server.requests]
    assert ran.ret == 0
    assert {(body.get("n"), body.get("threshold")) for body in bodies} >= {(1, 0.3), (1, 0.7), (2, 0.3), (2, 0.7)}
    assert lines_with(ran, "no answer changed with")


@pytest.mark.parametrize(("style", "is_noted"), [("plain,fancy", True), ("plain", False)])
def test_a_parameter_that_changes_no_answer_is_named(project: Project, style: str, is_noted: bool):
    output = ScoredBot(project).sweep("--grid", f"style={style}", "--grid", "min_score=.2,.6")
    assert (
        "note: no answer changed with style: the same chunks are retrieved at all of its values" in output
    ) is is_noted
    assert "no answer changed with min_score" not in output


def test_answers_that_are_there_already_cannot_be_swept(project: Project, bot: ScoredBot):
    project.run()
    asked = len(bot.calls)
    assert "is not asked, its answers are there; name another target" in bot.sweep(
        *GRID, "--target", "run:latest", code=2
    )
    assert len(bot.calls) == asked


def test_redact_keeps_texts_out_of_a_sweep(project: Project, bot: ScoredBot):
    project.configure('target = "scored:answer"\nredact = true')
    bot.sweep(*GRID)
    texts = "".join(path.read_text(encoding="utf-8") for path in (project.path / "reports").rglob("*.*"))
    assert "What about" not in texts
    assert "keeps no observations.jsonl" in bot.sweep("--resume", "latest", code=2)


def test_each_trial_of_a_case_is_asked_at_measured_points(project: Project, bot: ScoredBot):
    project.configure('target = "scored:answer"\nrepeat = 2')
    bot.sweep("--grid", "k=1,5")
    # The default and the pass twice, the probe once.
    assert len(bot.calls) == 5 * CASES
    assert bot.results["calls"] == {"asked": 100, "all_points": 120, "saved": 20}


def test_a_better_point_comes_as_lines_for_the_file_that_configures_the_project(project: Project):
    ScoredBot(project)
    (project.path / "pyproject.toml").rename(project.path / "rageval.toml")
    text = (project.path / "rageval.toml").read_text(encoding="utf-8").replace("[tool.rageval]\n", "")
    project.write("rageval.toml", text)
    result = project.rageval("sweep", "--grid", "k=1", "--grid", "min_score=0.5")
    result.stdout.fnmatch_lines(
        ["*in*rageval.toml, above its first [[]table[]]:", "k = 1", "[[]params[]]", "min_score = 0.5"]
    )


def test_the_quick_grid_takes_the_demo_a_pass_with_its_probe_and_two_measured_points(project: Project):
    shipped = Path(__file__).parents[2] / "evalcases" / "lab_ids.jsonl"
    project.write("evalcases/lab_ids.jsonl", shipped.read_text(encoding="utf-8"))
    project.configure('target = "demo"')
    result = project.rageval("sweep", "--quick", "--json")
    content = json.loads("\n".join(result.outlines))
    assert len(project.runs) == 3
    assert [point["how"] for point in content["points"]].count("measured") <= 2
    again = sum(point["asked"] for point in content["points"])
    assert content["calls"]["asked"] <= 4 * content["cases"] + again
    assert content["calls"]["saved"] > 0


@pytest.mark.child_process
def test_ctrl_c_says_how_to_go_on(project: Project, bot: ScoredBot):
    source = (project.path / "scored.py").read_text().replace("import json\n", "import json, time\n", 1)
    project.write("scored.py", source.replace("    params = dict(", "    time.sleep(0.2)\n    params = dict(", 1))
    command = ["-m", "pytest_rageval", "sweep", "--grid", "k=1,5", "--concurrency", "1"]
    process = project.start_process(*command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(bot.calls) >= 3, "three questions are asked", process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert errors.strip() == f"interrupted; rageval sweep --resume {bot.folder.name} goes on"
    bot.sweep("--resume", "latest")
    assert bot.results["finished"] is True
