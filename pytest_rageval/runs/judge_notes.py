"""Estimates of judging costs, and notes on judges: not pinned, unchecked, related to the system, suspicious replies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_rageval.io.suggestions import listed
from pytest_rageval.judges.judge import BaseJudge, several_served
from pytest_rageval.llm.model_spec import model_family, same_model
from pytest_rageval.run.plan import Plan
from pytest_rageval.text import counted

if TYPE_CHECKING:
    from pytest_rageval.llm.endpoint_options import Tariff


Judges = Iterable[Mapping[str, Any] | None]


def judge_notes(
    config: Mapping[str, Any], systems: Collection[object], judges: Judges, flagged: Sequence[str]
) -> Iterator[str]:
    """Yield the notes, a line each; none without a judge or with a heuristic one.

    systems  the models that gave the answers
    judges   the judges in the records
    flagged  keys of the cases with doubtful judgements
    """
    judge = config.get("judge") or {}
    models = sorted({each["model"] for each in judges if each and not each["heuristic"]})
    # Of judges that fixtures give, the configuration says nothing.
    if judge.get("model") in models:
        yield from (doubt.text for doubt in doubts_about(judge, config.get("judge_check")))
    served = served_names(judges)
    if (note := several_served(judge.get("identity") or ", ".join(models), served)) is not None:
        yield note
    for llm in sorted(system for system in systems if isinstance(system, str)):
        yield from kinship_notes(llm, models, served)
    if flagged:
        yield f"judgements of {counted(len(flagged), 'case')} are doubtful (see judge.flags): {listed(flagged)}"


def failure_note(keys: Sequence[str]) -> str | None:
    """Return the note about failed judgements; None if none failed."""
    if not keys:
        return None
    return f"judgements of {counted(len(keys), 'case')} failed (see judge.failed): {listed(keys)}"


def served_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """Return the note that the judge's server now reports another model; both arguments are contents of config.json."""
    was = before.get("observed", {}).get("judge")
    now = after.get("observed", {}).get("judge")
    # Another judge is told as a change of the configuration: this is about the same one.
    if was is None or now is None or was == now or before.get("judge") != after.get("judge"):
        return None
    return (
        f"the judge is asked for as before, but its server says that it is {now}, and said {was} for the baseline: "
        "judged scores may differ for that alone"
    )


def served_names(judges: Judges) -> list[str]:
    """Return the distinct model names that judges' servers reported."""
    names: set[str] = set()
    for judge in judges:
        if judge:
            names.update(judge.get("served", ()))
    return sorted(names)


def kinship_notes(llm: str, models: Sequence[str], served: Sequence[str] = ()) -> Iterator[str]:
    """Yield a note if the system's model is the judge's own or of its family, by its configured or its served name."""
    names = [*models, *(name for name in served if name not in models)]
    # By the served name as well: a gateway may hide one model behind the name of another.
    itself = next((name for name in names if same_model(llm, name)), None)
    if itself is not None:
        under = "" if itself in models else f" ({', '.join(models)} is served by {itself})"
        same = "the system's model and the judge's are the same, which favours its own answers"
        yield f"{llm} judges itself{under}: {same}"
        return
    family = model_family(llm)
    relative = next((name for name in names if family is not None and model_family(name) == family), None)
    if relative is not None:
        yield f"{relative} judges {llm}, a model of its own family, which favours answers in its own manner"


class JudgeDoubt(NamedTuple):
    """A note about a judge; `is_unchecked`: `rageval judge-check` settles it."""

    text: str
    is_unchecked: bool = False


def doubts_about(judge: Mapping[str, Any], check: Mapping[str, Any] | None) -> Iterator[JudgeDoubt]:
    """Yield notes about a judge as config.json describes it, and its check with answers of known quality."""
    model = judge["model"]
    # None is unknown, which is no reproach.
    if judge.get("pinned") is False:
        remedy = "name a dated or numbered version"
        yield JudgeDoubt(f"judge {model} is not pinned: the name may mean another model tomorrow; {remedy}")
    if judge.get("temperature"):
        temperature = f"{judge['temperature']:g}"
        yield JudgeDoubt(f"the judge's temperature is {temperature}, not 0: its scores vary from run to run")
    if check is None:
        never = f"judge {model} was never checked here: rageval judge-check tries whether it can be trusted"
        yield JudgeDoubt(never, is_unchecked=True)
        return
    if check["unchecked"]:
        names = ", ".join(check["unchecked"])
        partly = f"judge {model} was not checked with {names} as worded now: rageval judge-check tries it"
        yield JudgeDoubt(partly, is_unchecked=True)
    failed = {name: result for name, result in check["rubrics"].items() if result["failed"]}
    if failed:
        parts = [f"{name} {len(result['failed'])} of {result['canaries']}" for name, result in failed.items()]
        when = check["checked"][:10]
        yield JudgeDoubt(f"judge {model} failed canaries when it was checked ({when}): {', '.join(parts)}")


def estimate(judge: BaseJudge | None, plan: Plan, cases: int) -> str | None:
    """Return the likely cost of judging so many cases; None if nothing is paid or the price is unknown."""
    return estimate_at(None if judge is None else judge.tariff, plan, cases)


def estimate_at(tariff: Tariff | None, plan: Plan, cases: int) -> str | None:
    """Return the likely cost of judging so many cases at these prices; None if nothing is paid or prices unknown."""
    settings = plan.settings
    if tariff is None or settings.judge_cache == "replay" or settings.retrieval_only:
        return None
    prompts = plan.judge_prompts
    times = cases * settings.repeat * plan.most_repeats
    dollars = tariff.estimate(prompts, passages=settings.k, times=times)
    if dollars is None:
        return None
    # "Up to": not every rubric applies to every case.
    most = counted(times * len(plan.wordings), "judgement")
    if len(prompts) < len(plan.wordings):
        most += f" in {counted(times * len(prompts), 'request')}"
    return (
        f"judge {tariff.model}: up to {most}, about ${dollars:.2f} by list prices "
        f"({counted(settings.k, 'passage')} of usual length each); what the judge cache holds costs nothing"
    )


def judges_in_short(judged: Judges) -> dict[str, Any] | None:
    """Return the judge models, whether any judge is heuristic, and the prompt versions; None if nothing was judged."""
    judges = [judge for judge in judged if judge]
    if not judges:
        return None
    models = sorted({judge["model"] for judge in judges})
    prompts: dict[str, str] = {}
    for judge in judges:
        prompts |= judge["prompt_versions"]
    return {
        "model": ", ".join(models),
        "heuristic": any(judge["heuristic"] for judge in judges),
        "prompt_versions": dict(sorted(prompts.items())),
    }
