"""`rageval repl`: free questions to the system, cases and judgements, line by line."""

from __future__ import annotations

import cmd
import contextlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import click

from pytest_rageval.cli.case_files import chosen_cases
from pytest_rageval.cli.main import Verbs
from pytest_rageval.cli.options import EXISTING, as_arguments, exit_codes, run_options, settings_given
from pytest_rageval.cli.terminal import clean
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.errors import RagevalError, SettingsError
from pytest_rageval.io.case_output import Output
from pytest_rageval.render.text.repl_lines import (
    diff_lines,
    evaluation_lines,
    judged_lines,
    metric_line,
    query_lines,
    report_lines,
    settings_line,
)
from pytest_rageval.text import printable
from pytest_rageval.tune.repl import SETTABLE, ReplSession

NAME = "rageval"
BANNER = f"""\
{NAME} eval — interactive mode
Commands: query <text>, eval <index>, judge <index>, sweep, report, quit
          set <name> <value>, diff, save, label, help
"""
HISTORY = "repl_history"
MOST_HISTORY = 1000
"""Lines that are kept."""
VERBS = ("query", "eval", "judge", "sweep", "report", "set", "diff", "save", "label", "help", "quit")
HELP = """\
  query TEXT         what a question retrieves; a line that is no command is a question
  eval N [METRIC …]  a case, by its number from 0 or its id; with the arithmetic of metrics
  judge N            the answer to a case, and what the judge gives it
  set NAME VALUE     a parameter for what is asked from now on; without a value it is taken back; alone: all of them
  diff               the last question before the last change of a parameter, and now
  save               the last question becomes a draft of a case
  label [N]          the label screen, at a case
  sweep              the quick grid of rageval sweep
  report             all cases: precision, recall, MRR by category, and the failures
  quit               the end, as Ctrl-D"""


@click.command()
@click.argument("cases", nargs=-1, type=EXISTING)
@run_options("target", "judge", "judge-base-url", "k", "param", "timeout", "reports")
@exit_codes({1: "a line of a pipe failed"})
def repl(cases: tuple[Path, ...], **options: Any) -> None:
    """Talk to the system: ask it anything, look at CASES (default: those of the project), judge, change parameters.

    Also reads lines from a pipe: echo 'eval 0' | rageval repl.
    """
    given = settings_given(options)
    project = find_project(given)
    loaded, files = chosen_cases(project, cases, least=0)
    session = ReplSession(project, given, loaded, files, partial(Output, clean))
    try:
        line_loop = Lines(session, project, given, cases)
        line_loop.run()
    finally:
        session.close()
    raise SystemExit(1 if line_loop.has_failed and not line_loop.is_terminal else 0)


class Lines(cmd.Cmd):
    """Reads lines and shows the result of each. A wrong line never ends the session."""

    _OF_ONE_LINE: ClassVar = frozenset({"sweep", "report", "diff", "save", "quit", "help"})
    """Commands without arguments: a longer line is a question that begins with such a word."""

    def __init__(
        self, session: ReplSession, project: Project, options: dict[str, Any], named: Sequence[Path] = ()
    ) -> None:
        super().__init__()
        self.session = session
        self._project = project
        self._options = options
        self._named = named
        self.is_terminal = sys.stdin.isatty()
        self.use_rawinput = self.is_terminal
        self.prompt = f"{NAME}> " if self.is_terminal else ""
        self.intro = printable(BANNER) if self.is_terminal else None
        self.has_failed = False

    def run(self) -> None:
        """Read and execute lines until the end of the input, or `quit`. Ctrl-C discards a line."""
        with self._history():
            while True:
                try:
                    self.cmdloop()
                    return
                except KeyboardInterrupt:
                    if not self.is_terminal:
                        return
                    self._say("")
                except UnicodeDecodeError:
                    self._fail("a line is not UTF-8")
                self.intro = None

    def onecmd(self, line: str) -> bool:
        """Execute a line; return True if it was the last."""
        if line == "EOF":  # so the base class calls the end of the input
            return True
        try:
            return bool(super().onecmd(line))
        except RagevalError as error:
            for problem in error.problems:
                self._fail(problem)
        except click.ClickException as error:
            self._fail(error.format_message())
        except KeyboardInterrupt:
            self._say("  (interrupted)")
        except OSError as error:
            self._fail(f"{error.filename or 'a file'}: {error.strerror or error}")
        except Exception as error:  # noqa: BLE001  a judge of the project's own may raise anything
            self._fail(f"{type(error).__name__}: {error}")
        return False

    def postcmd(self, stop: bool, line: str) -> bool:
        if self.is_terminal and line.strip() and (not stop or line == "EOF"):
            self._say("")
        return stop

    # ── lines ─────────────────────────────────────────────────────────────────────────────────────────────────

    def parseline(self, line: str) -> tuple[str | None, str | None, str]:
        """Return the command and its arguments; a line that only begins like one is a question."""
        text = line.strip()
        word, _, rest = text.partition(" ")
        arguments = rest.strip()
        is_question = word not in VERBS
        if word in self._OF_ONE_LINE and arguments:
            is_question = True
        if word == "judge" and len(arguments.split()) > 1:
            is_question = True
        if is_question:
            return None, None, text
        return word, arguments, text

    def emptyline(self) -> bool:
        return False

    def default(self, line: str) -> None:
        self._ask(line)

    def do_query(self, text: str) -> None:
        if not text:
            raise SettingsError("query: write a question behind it")
        self._ask(text)

    def _ask(self, question: str) -> None:
        self._show(query_lines(self.session.query(question)))

    def do_eval(self, arguments: str) -> None:
        reference, *metrics = arguments.split() or [""]
        if not reference:
            raise SettingsError("eval: write the number or the id of a case behind it, as in eval 0")
        measures = [self.session.measure(name) for name in metrics]
        observation = self.session.evaluated(self.session.case(reference))
        self._show(evaluation_lines(observation))
        self._show(metric_line(observation, measure) for measure in measures)

    def do_judge(self, reference: str) -> None:
        if not reference:
            raise SettingsError("judge: write the number or the id of a case behind it, as in judge 0")
        case = self.session.case(reference)
        self._say(f"  Generating answer for: {' '.join(case.question.split())}")
        observation = self.session.answered(case)
        answer = observation.answer.text or "–"
        self._say(f"  Answer: {' '.join(answer.split())}")
        self._say("  Judging...")
        self._show(judged_lines(self.session.judged(observation)))

    def do_report(self, _: str) -> None:
        self._show(report_lines(self.session.report()))

    def do_set(self, arguments: str) -> None:
        name, _, value = arguments.partition(" ")
        if name:
            self.session.set(name, value.strip())
        self._say(settings_line(self.session.settings))

    def do_diff(self, _: str) -> None:
        self._show(diff_lines(self.session.diff()))

    def do_save(self, _: str) -> None:
        path, draft_id = self.session.save()
        self._say(f"  saved as {draft_id} in {path}")

    def do_sweep(self, _: str) -> None:
        parameters = self.session.parameters.items()
        set_here = [f"{name}={value}" for name, value in parameters if name not in SWEPT]
        given = {name: value for name, value in self._options.items() if name in OF_SWEEP}
        params = (*self._options.get("params", ()), *set_here)
        paths = [str(path.resolve()) for path in self._named]
        self._call("sweep", "--quick", *paths, *as_arguments({**given, "params": params}))

    def do_label(self, reference: str) -> None:
        case = self.session.case(reference or "0")
        self._call("label", str(self._project.root / case.source.file), "--case", case.id)

    def do_help(self, _: str) -> None:
        self._say(HELP)

    def do_quit(self, _: str) -> bool:
        return True

    def _call(self, verb: str, *arguments: str) -> None:
        """Call another verb, whose end does not end the session."""
        group = Verbs()
        command = group.get_command(click.Context(group), verb)
        assert command is not None
        with contextlib.suppress(SystemExit):
            command.main([*arguments], prog_name=f"{NAME} {verb}", standalone_mode=False)

    # ── completion and history ────────────────────────────────────────────────────────────────────────────────

    def completenames(self, text: str, *_: Any) -> list[str]:
        return [f"{verb} " for verb in VERBS if verb.startswith(text)]

    def completedefault(self, text: str, line: str, begins: int, _: int) -> list[str]:
        verb = line.split(" ", 1)[0]
        place = len(line[:begins].split())
        names: dict[str, Callable[[], list[str]]] = {
            "eval": self._ids if place == 1 else lambda: self.session.metric_names,
            "judge": self._ids,
            "label": self._ids,
            "set": lambda: [*SETTABLE, *self.session.parameters],
        }
        try:
            fitting = names.get(verb, list)()
        except RagevalError:  # the line is incomplete
            return []
        return sorted({name for name in fitting if name.startswith(text)})

    complete_eval = completedefault
    complete_judge = completedefault
    complete_label = completedefault
    complete_set = completedefault

    def _ids(self) -> list[str]:
        return [case.id for case in self.session.cases]

    @contextlib.contextmanager
    def _history(self) -> Iterator[None]:
        """Set up Tab completion on a terminal, and store the history with the reports unless texts are kept out."""
        if not self.is_terminal or importlib.util.find_spec("readline") is None:  # not on every platform
            yield
            return
        import readline

        file = self._project.reports / "cache" / HISTORY
        readline.set_completer_delims(" \t")
        readline.set_history_length(MOST_HISTORY)
        is_kept = not self._project.settings.redact
        with contextlib.suppress(OSError):
            readline.read_history_file(file)
        try:
            yield
        finally:
            if is_kept:
                with contextlib.suppress(OSError):  # answers do not depend on the history
                    file.parent.mkdir(parents=True, exist_ok=True)
                    readline.write_history_file(file)

    def _show(self, lines: Iterator[str]) -> None:
        for line in lines:
            self._say(line)

    def _say(self, text: str) -> None:
        click.echo(printable(text))

    def _fail(self, problem: str) -> None:
        self.has_failed = True
        self._say(f"  {problem}")


OF_SWEEP = ("target", "k", "timeout", "reports")
"""Settings of the session that a sweep takes over."""
SWEPT = ("k", "min_score", "chunk_max_tokens", "chunk_overlap")
"""Parameters of the quick grid: a sweep ignores their values in this session."""
