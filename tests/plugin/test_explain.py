"""`rageval explain`: one case, everything, from what a real run wrote."""

from __future__ import annotations

import pytest
from project import Project, a_case


@pytest.fixture
def explained(project: Project):
    """A run of two cases, and a way to ask about it."""
    far = [{"rel_path": "notes/water.md", "heading_path": "# Water > ## Freezing"}]
    project.cases(
        [a_case("far", "boiling or freezing?", gold_supports=far, gold={"answer": "Water freezes at 0 degrees."}),
         a_case("lost", "boiling lost")]
    )  # fmt: skip
    project.write(
        "losing.py",
        "import bot\ndef answer(q):\n    assert 'lost' not in q, 'gone \\x1b[31m'\n    return bot.answer(q)\n",
    )
    project.configure('target = "losing:answer"')
    project.run()

    def ask(*arguments: str) -> pytest.RunResult:
        return project.rageval("explain", *arguments)

    return ask


def test_a_case_is_shown_with_its_arithmetic_and_gates(explained):
    result = explained("latest", "far")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "evalcases/a.jsonl::far*",
            "written at evalcases/a.jsonl:1",
            "question*boiling or freezing?",
            "*gold 1*notes/water.md > # Water > ## Freezing",
            "*1  notes/water.md > # Water > ## Boiling*",
            "*2  notes/water.md > # Water > ## Freezing*gold 1",
            "*mrr*0.500*1 / rank 2",
            "*recall_any@5 >= 1*is 1*holds",
            "*no concepts are labelled:*concept_map_f1",
        ]
    )


def test_a_case_that_could_not_be_asked_says_why_and_sends_nothing_to_the_terminal(explained):
    result = explained("latest", "evalcases/a.jsonl::lost")
    result.stdout.fnmatch_lines(["evalcases/a.jsonl::lost   error", "*exception: *gone \\x1b[[]31m*"])
    assert "\x1b[31m" not in str(result.stdout)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["latest", "farr"], "did you mean 'far'?"),
        (["latest~5", "far"], "holds 1 run;"),
        (["nowhere", "far"], "there is no run 'nowhere'; the last ones are"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(explained, arguments: list[str], said: str):
    result = explained(*arguments)
    assert result.ret == 2
    assert len(result.errlines) == 1
    assert said in result.errlines[0]
