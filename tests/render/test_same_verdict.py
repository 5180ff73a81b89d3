"""The verdict of eight ways in which a run can end: one sentence in every face, and exit codes that agree with it."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest
from eight_runs import BOT, ENDINGS, a_peak, begun, options_of_pytest
from project import Project


def plain(text: str) -> str:
    """Return a text on one line, without the marks and escapes of Markdown."""
    return " ".join(re.sub(r"&lt;", "<", re.sub(r"[\\*`>]|&gt;", "", text)).split())


def of_first_screen(page: str) -> str:
    """Return the words of the verdict of a page."""
    verdict = page[page.index('aria-label="Verdict"') : page.index('<p class="against">')]
    return unescape(re.sub(r"<[^>]+>", "", verdict))


@pytest.mark.parametrize("name", ENDINGS)
def test_every_face_says_the_same_sentence_and_exit_codes_follow_from_it(project: Project, name: str):
    ending = ENDINGS[name]
    begun(project, ending)
    faces = {"run": project.rageval("run", "--run-id", "now", *ending.options)}
    verdict = project.metrics()["verdict"]
    of_pytest = project.run("-p", "no:randomly", "--rageval-run-id", "later", *options_of_pytest(ending.options))
    assert project.metrics()["verdict"]["sentence"] == verdict["sentence"]
    faces["pytest"] = of_pytest
    faces["compare"] = project.rageval("compare", "baseline", "later")
    for face, result in faces.items():
        assert plain(verdict["sentence"]) in plain(result.stdout.str()), face
        assert bool(result.ret) == verdict["fails_build"], face
    texts = {
        "summary": (project.runs[-1] / "summary.md").read_text(encoding="utf-8"),
        "comment": project.rageval("comment", "later").stdout.str(),
        "stored": json.loads((project.runs[-1] / "metrics.json").read_text("utf-8"))["verdict"]["sentence"],
    }
    for face, text in texts.items():
        assert plain(verdict["sentence"]) in plain(text), face
    page = (project.runs[-1] / "report.html").read_text(encoding="utf-8")
    assert plain(verdict["sentence"]) in plain(of_first_screen(page))
    tone = "red" if verdict["fails_build"] else {"retrieval only": "amber"}.get(name, "green")
    assert f'class="verdict {tone}"' in page


def test_the_endings_differ(project: Project):
    """Each of the eight is named for what it shows: were two alike, one would test nothing."""
    verdicts = {"green": False, "five failing": True}
    for name, is_failing in verdicts.items():
        folder = Project(project.path / name.replace(" ", "_"))
        begun(folder, ENDINGS[name])
        assert bool(folder.rageval("run").ret) == is_failing
        folder.close()


@pytest.mark.parametrize("quiet", ["-q", "-qq"])
def test_quiet_shows_the_verdict_alone_and_very_quiet_nothing(project: Project, quiet: str):
    begun(project, ENDINGS["five failing"])
    lines = project.run(quiet).outlines
    verdicts = [place for place, line in enumerate(lines) if "Fails the build: 5 cases newly fail" in line]
    if quiet == "-qq":
        assert not verdicts
        return
    (place,) = verdicts
    assert re.fullmatch(r"\d+ failed, .*", lines[place + 1])
    assert lines[place - 1].startswith("FAILED ")
    assert not any("why cases fail" in line or line.startswith("summary:") for line in lines)


def test_the_verdict_is_on_the_last_screen(project: Project):
    begun(project, ENDINGS["hundred failing for one cause"])
    result = project.run("-p", "no:randomly")
    screen = result.outlines[-20:]
    verdict = next(place for place, line in enumerate(screen) if "Fails the build: 100 cases newly fail" in line)
    assert any(re.match(r"  100 × nothing was retrieved", line) for line in screen[:verdict])
    assert screen[verdict + 1] == "what changed: params.min_score – → 0.5"
    headings = [line for line in result.outlines if re.fullmatch(r"_+ q\d+ _+", line)]
    assert len(headings) == 10
    assert any(line.startswith("90 more cases are not shown in full") for line in result.outlines)
    assert len([line for line in result.outlines if line.startswith("FAILED evalcases/")]) == 100


def test_compare_says_what_changed_under_the_verdict_and_causes_before_cases(project: Project):
    begun(project, ENDINGS["five failing"])
    project.rageval("run")
    lines = project.rageval("compare", "baseline", "latest", COLUMNS="120").outlines
    assert "Fails the build: 5 cases newly fail" in lines[0]
    assert lines[2].split() == ["params.min_score", "–", "→", "0.5"]
    cause = lines.index("  5 × nothing was retrieved: q1, q2, q3 and 2 more")
    assert lines[cause - 1] == "why cases newly fail"
    assert cause < next(place for place, line in enumerate(lines) if line.startswith("Fail now, did not before"))


def test_equal_errors_are_one_cause_without_a_table(project: Project):
    begun(project, ENDINGS["all errors"])
    result = project.rageval("run")
    causes = [line for line in result.outlines if line.startswith("  12 × the system failed: ")]
    assert len(causes) == 1
    assert len([line for line in result.outlines if line.startswith("ERROR ")]) == 1
    assert not any("multi_hop" in line for line in result.outlines)


def test_a_run_that_fails_is_never_advised_as_the_baseline(project: Project):
    project.write("bot.py", BOT)
    project.cases(map(a_peak, range(1, 4)))
    table = 'target = "bot:answer"\n[tool.rageval.params]\nwrong = [1]\n[tool.rageval.gates]\n'
    project.configure(f'{table}case = ["gold_in_answer off", "correctness off"]\nrun = ["exact_match >= 0.9"]\n')
    result = project.rageval("run", "--json")
    assert result.ret == 1
    assert "--update-baseline" not in result.stdout.str()


def test_a_count_names_its_cases(project: Project):
    project.write("bot.py", BOT)
    project.cases(map(a_peak, range(1, 6)))
    gates = '[tool.rageval.gates]\ncase = ["recall_any off", "gold_in_answer off", "over_abstention off"]\n'
    project.configure(f'target = "bot:answer"\n{gates}')
    assert "3 cases passed though no gate looked at the gold: q1, q3, q4" in plain(project.rageval("run").stdout.str())


def test_the_slowest_calls_are_shown_on_demand(project: Project):
    begun(project, ENDINGS["green"])
    assert "slowest calls" not in project.run().stdout.str()
    assert "slowest calls: " in project.run("--durations=3").stdout.str()


def test_a_gate_that_is_new_to_a_known_failure_is_marked(project: Project):
    begun(project, ENDINGS["known failure with a new gate"])
    project.rageval("run")
    lines = project.rageval("explain", "latest", "q3").outlines
    new = [line for line in lines if "new, it did not fail before" in line]
    assert [line.split()[0] for line in new] == ["gold_in_answer"]
    assert lines.index("fails") < lines.index("question   How high is peak 3?") < lines.index("before")
    assert any("5 shared tokens, precision 5 / 6 tokens" in line for line in lines)


ANSWERS = {
    "five failing": ("5 × nothing was retrieved", "what to do: Nothing is retrieved", "rageval explain"),
    "all errors": ("12 × the system failed", "what to do: The system gives no answer", "rageval explain"),
    "known failure with a new gate": (
        "1 × another figure than the gold answer",
        "what to do: Answers give other",
        "q3",
    ),
    "flaky": ("1 × another figure than the gold answer", "what to do: Answers give other figures", "q4"),
}
"""Why, what to do, which case: what the first screen of a failing run says besides the verdict."""


@pytest.mark.parametrize("name", ANSWERS)
def test_the_last_screen_and_the_comment_say_why_which_case_and_what_to_do(project: Project, name: str):
    begun(project, ENDINGS[name])
    why, advice, case = ANSWERS[name]
    result = project.rageval("run", "--run-id", "now", *ENDINGS[name].options, COLUMNS="80")
    screen = plain("\n".join(result.outlines[-24:]))
    for answer in (why, advice, case):
        assert answer in screen
    comment = plain(project.rageval("comment", "now").stdout.str()[:2_000])
    assert why in comment
    assert advice.removeprefix("what to do: ") in comment
    page = (project.runs[-1] / "report.html").read_text(encoding="utf-8")
    start = unescape(re.sub(r"<[^>]+>", "", page[: page.index('id="cases"')]))
    assert why in start
    assert advice.removeprefix("what to do: ") in start


def test_gates_that_were_not_measured_are_counted_in_the_verdict(project: Project):
    begun(project, ENDINGS["retrieval only"])
    project.rageval("run", "--retrieval-only")
    sentence = project.metrics()["verdict"]["sentence"]
    assert sentence.endswith("answers were not measured. 12 of 12 pass, was 12; 2 gates were not measured.")


def test_figures_of_a_verdict_have_at_most_three_decimals(project: Project):
    begun(project, ENDINGS["five failing"])
    project.rageval("run")
    assert "recall_any@5 fell by 0.417, tolerated 0.05" in project.metrics()["verdict"]["sentence"]
