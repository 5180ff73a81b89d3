"""`rageval generate conversations`: drafts from scenarios, in which a model plays the person."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from pytest_rageval.cases.drafts import add_drafts, check_is_drafts, drafts_in
from pytest_rageval.cases.project_cases import readable_cases
from pytest_rageval.cli.drafting_model import (
    MAX_COST,
    asked_model,
    cost_in_words,
    exit_after,
    spent_as_json,
    stored_replies,
    tell_spent,
    this_command,
)
from pytest_rageval.cli.options import EXISTING_FILE, JSON, STOPPED, echo_json, exit_codes, output_option
from pytest_rageval.cli.output import from_here
from pytest_rageval.cli.terminal import clean
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.masking import Mask, public_target
from pytest_rageval.make.asked_once import Spent, StoredReplies
from pytest_rageval.make.scenarios import Scenario, most_turns, read_scenarios
from pytest_rageval.make.simulated_person import SimulatedPerson
from pytest_rageval.make.simulation import Played, Simulation, TalkedTo
from pytest_rageval.model import Json
from pytest_rageval.providers import FORMS
from pytest_rageval.run.prepare import target_in
from pytest_rageval.targets import check_target
from pytest_rageval.text import counted, printable


@click.command()
@click.option(
    "--scenarios",
    "file",
    required=True,
    type=EXISTING_FILE,
    metavar="FILE",
    help="The scenarios, one JSON object a line: scenario, goal, persona, facts, opening, expected_outcome, max_turns.",
)
@click.option("--user", required=True, metavar="MODEL", help=f"The model that plays the person: {', '.join(FORMS)}.")
@click.option("--target", metavar="SPEC", help="The system to talk to (default: as configured).")
@output_option("The file of drafts to add to (default: evalcases/SCENARIOS.drafts.jsonl).")
@MAX_COST
@click.option("--dry-run", is_flag=True, help="Say what it would take at most, and stop.")
@JSON
@exit_codes(
    {
        1: "a conversation broke, the model or the system stopped answering, or --max-cost is spent;"
        " finished conversations are kept, and the same command goes on",
        STOPPED: "interrupted; finished conversations are kept, and the same command goes on",
    }
)
def conversations(
    file: Path,
    user: str,
    target: str | None,
    output: Path | None,
    max_cost: float | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Draft conversations from scenarios: a model plays the person, and the system answers.

    Each finished conversation is a draft with the person's words as its turns; what the system answered is a note in
    it, and no gold. No run plays scenarios or asks drafts: accept them one by one into a case file. Stopped at any
    point, the same command goes on where it was.
    """
    project = find_project()
    scenarios = read_scenarios(file, project.settings.max_line_bytes)
    path = output or project.root / "evalcases" / f"{file.stem}.drafts.jsonl"
    check_is_drafts(path)
    drafted = {case.conversation or case.id for case in (*drafts_in(path), *readable_cases(project))}
    waiting = [scenario for scenario in scenarios if scenario.conversation not in drafted]
    mask = Mask(project.settings.secrets())
    replies = stored_replies(path, mask)
    model = asked_model(project, "--user", user, replies, max_cost)
    person = SimulatedPerson(model)
    system = _system(project, target, mask, replies, is_asked=bool(waiting) and not dry_run)
    already = len(scenarios) - len(waiting)
    estimate = _told_estimate(person, system, waiting, already, is_for_program=as_json)
    started = time.monotonic()
    drafting = _Drafting(path, system.target.name, public_target(user))
    if waiting and not dry_run:
        Simulation(person, system, model.spent, drafting.take).play(waiting, project.settings.concurrency)
        click.echo(drafting.told(time.monotonic() - started), err=as_json)
        tell_spent(model.spent)
    _tell_broken(drafting.broken)
    written = str(from_here(path))
    if as_json:
        content = {
            "file": written,
            "scenarios": len(scenarios),
            "drafted_before": already,
            "new_drafts": drafting.added,
            "turns": drafting.turns,
            "broken": {played.scenario.conversation: played.problem for played in drafting.broken},
            "estimate": estimate,
            "model": spent_as_json(model.spent),
            "interrupted": model.spent.is_interrupted,
        }
        echo_json(content, _next(model.spent, drafting, written))
    elif not dry_run:
        new = f"{written}: {counted(drafting.added, 'new draft')}; no run asks them before they are accepted"
        click.echo(printable(new) if drafting.added else "no new drafts")
    exit_after(model.spent, has_failed=bool(drafting.broken))


@dataclass(slots=True)
class _Drafting:
    """The conversations that have ended: each becomes a draft at once, so that none is lost."""

    path: Path
    target: str
    user: str
    added: int = 0
    finished: int = 0
    turns: int = 0
    broken: list[Played] = field(default_factory=list)

    def take(self, played: Played) -> None:
        """Add the draft of a conversation, unless it broke."""
        self.turns += len(played.turns)
        if played.problem is not None:
            self.broken.append(played)
            return
        self.finished += 1
        self.added += add_drafts(self.path, [played.record(self.target, self.user)])

    def told(self, seconds: float) -> str:
        """Return what was played, in words."""
        talks = counted(self.finished, "conversation")
        same = self.finished - self.added
        repeated = f", {same} of them with the questions of another draft" if same else ""
        return f"{talks} with {counted(self.turns, 'turn')} in {seconds:.0f} s{repeated}"


def _system(project: Project, spec: str | None, mask: Mask, replies: StoredReplies, *, is_asked: bool) -> TalkedTo:
    """Return the system that persons talk with; raise SettingsError if it cannot be talked to."""
    named = spec or project.settings.target
    if named is None:
        raise SettingsError("no system to talk to; name it with --target, or as target in the configuration")
    system = target_in(project, named)
    if not system.is_called:
        kind = "holds answers that exist already"
        raise SettingsError(f"--target {printable(public_target(named))}: {kind}; name a system that can be asked")
    problems = check_target(system, named, (), is_partial_allowed=True) if is_asked else []
    if problems:
        raise SettingsError(*problems)
    return TalkedTo(system, named, project.settings, mask, replies)


def _told_estimate(
    person: SimulatedPerson,
    system: TalkedTo,
    waiting: Sequence[Scenario],
    already: int,
    *,
    is_for_program: bool,
) -> dict[str, Json]:
    """Say what playing the scenarios takes at most, and return it."""
    requests, dollars = person.estimate(waiting)
    questions = most_turns(waiting)
    before = f", {already} drafted already" if already else ""
    click.echo(f"{counted(len(waiting), 'scenario')} to play{before}", err=is_for_program)
    at_most = f"at most {counted(questions, 'question')} to {printable(system.target.name)}"
    asked = f"{counted(requests, 'request')} to the model, {cost_in_words(dollars)}"
    click.echo(f"{at_most} and {asked}", err=True)
    return {"questions": questions, "requests": requests, "dollars": dollars}


def _tell_broken(broken: Sequence[Played]) -> None:
    for played in broken:
        name = played.scenario.conversation
        click.echo(clean(f"{name}: broke, and is no draft: {played.problem}"), err=True)


def _next(spent: Spent, drafting: _Drafting, file: str) -> Iterator[str]:
    if spent.has_stopped_early or drafting.broken:
        yield this_command()
    if drafting.added:
        yield f"rageval label {shlex.quote(file)}"
