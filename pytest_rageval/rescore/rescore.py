"""Re-scoring of a stored run: scores, verdicts and aggregates computed again from its observations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.outcomes import ending_from_records
from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import replacing, write_json, write_lines
from pytest_rageval.io.masking import public_target
from pytest_rageval.metrics.registry import Measure, RunScore, is_described
from pytest_rageval.model import CaseResult, NotApplicable, Score
from pytest_rageval.rescore.attempts_again import decided_again
from pytest_rageval.rescore.relabel import Labels, Line, Lines
from pytest_rageval.run.extent import Extent
from pytest_rageval.run.finish import FinishedRun, finish
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.scoring import scored_trials
from pytest_rageval.runs.config import config_hash_of
from pytest_rageval.runs.decision_hash import asked_part, gated_part
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.observation_check import check_observations, was_evaluated
from pytest_rageval.runs.reader import CONFIG, StoredRun
from pytest_rageval.runs.record_seal import DECIDED_AGAIN, RECORDED, is_decision_interrupted, seal_of
from pytest_rageval.runs.records.line_form import OBSERVATIONS, RESULTS
from pytest_rageval.runs.records.observation_line import observed_of, trial_of
from pytest_rageval.runs.records.record_files import record_at
from pytest_rageval.runs.records.record_texts import CUT
from pytest_rageval.runs.records.result_line import case_fields, result_record, to_line
from pytest_rageval.runs.results_file import RunWriter
from pytest_rageval.runs.stored_plan import plan_of, settings_of

OF_JUDGING = (
    "judge",
    "judge_base_url",
    "judge_temperature",
    "judge_repeats",
    "judge_requests",
    "rubrics",
    "retrieval_only",
)
"""Settings that re-judging may change; all others stay as in the run."""


def is_described_measure(measure: Measure) -> bool:
    """Return True for a metric of the project's own that the run knows by description only."""
    return is_described(measure.metric)


def no_progress(done: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class Rescoring:
    """A stored run to decide again.

    plan      its own plan (`plan_again`)
    baseline  the side to compare with
    labels    new labels for its cases, also written to its observations
    stays     selects measures that keep their recorded scores while labels do not change
    changed   the members of config.json that change
    watch     called with the number of finished cases
    """

    run: StoredRun
    plan: Plan
    baseline: Side | None
    labels: Labels | None = None
    stays: Callable[[Measure], bool] = is_described_measure
    changed: Mapping[str, Any] = field(default_factory=dict)
    watch: Callable[[int], None] = no_progress

    def score(self, judged: Callable[[Lines], Lines] | None = None) -> FinishedRun:
        """Decide the run again and write records, metrics.json and config.json.

        `judged` maps the lines of observations.jsonl, one for one. Files are replaced atomically, observations first.
        From the first record to the last aggregate, config.json says that the run is being decided again: if that is
        interrupted, readers say so, and the run can be scored from its observations.
        """
        return self._finished(self._scored(), judged)

    def aggregate(self) -> FinishedRun:
        """Aggregate the recorded scores and verdicts again, by the new labels if there are any.

        Without labels, write only metrics.json and config.json.
        """
        return self._finished(map(self._labelled, self.run.records()), is_read_only=self.labels is None)

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """Return the run's config.json with the current measures, the changed members, and its new hash."""
        plan = self.plan
        run = self.run
        judging = plan.settings.model_dump(mode="json", include=set(OF_JUDGING))
        servers = {name: judging[name] for name in ("judge", "judge_base_url") if judging[name] is not None}
        judging |= {name: public_target(value) for name, value in servers.items()}
        recorded_config = without_decision(run.config)
        config = dict(recorded_config)
        config["metrics"] = [measure.name for measure in (*plan.measures, *plan.run_measures)]
        config["rubrics"] = {name: wording.prompt_version for name, wording in sorted(plan.wordings.items())}
        config["ontology"] = plan.ontology
        config["settings"] = {**config["settings"], **judging}
        config |= self.changed
        if self.labels is not None:
            config |= self.labels.changed
        if config == recorded_config:
            return recorded_config
        config["config_hash"] = config_hash_of(config)
        return config

    def _finished(
        self, records: Lines, judged: Callable[[Lines], Lines] | None = None, *, is_read_only: bool = False
    ) -> FinishedRun:
        """Write the files that change, under the run's lock."""
        earlier = self.run.finished_metrics
        folder = RunFolder(self.run.path)
        if is_read_only or not is_decision_interrupted(self.run.path / RESULTS, self.run.config):
            self.run.check_records()
        folder.lock()
        try:
            plan = replace(self.plan, stored_run_scores=stored_run_scores(self.plan, earlier))
            if is_read_only:
                writer = RunWriter(folder, plan, self.run.config)
                for record in records:
                    writer.note(record)
                return finish(writer, plan, same_extent(writer, earlier), self.baseline)
            writer = RunWriter(folder, plan, self.config)
            # First, since they cannot be computed again: killed after this, the run is scored from them.
            self._write_observations(judged)
            writer.config = self._write_records(records, writer)
            finished = finish(writer, plan, same_extent(writer, earlier), self.baseline)
            config = {**without_decision(finished.config), RECORDED: writer.seal()}
            write_json(self.run.path / CONFIG, config)
            return replace(finished, config=config)
        finally:
            folder.close()

    def _write_records(self, records: Lines, writer: RunWriter) -> Mapping[str, Any]:
        """Replace results.jsonl; before that, write a config.json that says so, and return its content."""
        with replacing(self.run.path / RESULTS) as new_file:
            with new_file.open("wb") as file:
                file.writelines(f"{line}\n".encode() for line in _noted(records, writer))
            # Noted before the file is replaced: killed between the two, a run was refused by every command.
            seal = seal_of(new_file, writer.rows.keys())
            config = {**self.config, DECIDED_AGAIN: seal}
            write_json(self.run.path / CONFIG, config)
        return config

    def _write_observations(self, judged: Callable[[Lines], Lines] | None) -> None:
        path = self.run.path / OBSERVATIONS
        if (self.labels is None and judged is None) or not path.exists():
            return
        lines: Lines = map(record_at, self.run.observation_places().values())
        if self.labels is not None:
            labelled = self.labels.applied(lines, self.run.config["settings"]["gold_by"], self.plan.place_rules)
            # Case files may hold credentials, as those of the run may.
            lines = map(self.plan.mask.value, labelled)
        if judged is not None:
            lines = judged(lines)
        write_lines(path, map(to_line, lines))

    def _scored(self) -> Lines:
        """Score all trials of a case together, in the order of the recorded ones."""
        observations = self.run.observation_places()
        for number, records in enumerate(self.run.cases(), start=1):
            places = [observations.get((record["case_key"], record["trial"])) for record in records]
            yield from self._scored_case(records, [record_at(place) for place in places if place is not None])
            self.watch(number)

    def _scored_case(self, records: Sequence[dict[str, Any]], lines: Sequence[Line]) -> Sequence[Line]:
        """Return the records of a case; if a trial was not observed, only with new labels."""
        if len(lines) < len(records) or not all(map(was_evaluated, records)):
            return [self._labelled(record) for record in records]
        # Scores by the old labels must not be mixed with scores by the new ones.
        stays = is_described_measure if self.labels else self.stays
        staying = [measure.name for measure in self.plan.measures if stays(measure)]
        if not all(_has_all(record, staying) for record in records):
            return records  # a metric that stays raised an error, which stays too
        by_trial = {record["trial"]: record for record in records}
        stored = [_stored_scores(by_trial[line["trial"]], staying) for line in lines]
        observed = [observed_of(line, self.run.config) for line in lines]
        trials = [trial_of(line) for line in lines]
        plan = self.plan
        scored = scored_trials(trials, observed, plan, records[0]["attempts"], stored)
        confirms = {record["trial"]: record.get("confirms", 0) for record in records}
        results_of_trials: list[CaseResult] = []
        for result in scored:
            kept = _with_stored_rewrite(result, by_trial[result.trial], staying)
            results_of_trials.append(replace(kept, confirms=confirms[result.trial]))
        evaluated = decided_again(results_of_trials, records, plan, self.baseline)
        outcome, reason = ending_from_records(evaluated.overall, records, plan, self.baseline)
        overall = replace(evaluated.overall, outcome=outcome, reason=reason)
        results = [replace(result, outcome=outcome, reason=reason) for result in evaluated.trials]
        again = [result_record(result, plan, self.config["config_hash"], overall) for result in results]
        return [self._with_hashes(record, by_trial[record["trial"]]) for record in again]

    def _with_hashes(self, record: dict[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
        """Return a new record with the hashes of its case as it was asked or labelled.

        The one that was scored may be another: observations hold cases with credentials masked.
        """
        labelled = self._labelled(dict(recorded))
        asked = asked_part(labelled.get("decision_hash"))
        if not asked:
            return record
        decision = f"{asked}-{gated_part(record['decision_hash'])}"
        return {**record, "content_hash": labelled["content_hash"], "decision_hash": decision}

    def _labelled(self, record: dict[str, Any]) -> dict[str, Any]:
        if self.labels is None:
            return record
        case = self.labels.of(record["source"]["file"], record["test_case_id"])
        return record if case is None else record | self.plan.mask.value(case_fields(case, self.plan))


def without_decision(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a config.json without the note that the run is being decided again."""
    return {name: value for name, value in config.items() if name != DECIDED_AGAIN}


def _noted(records: Lines, writer: RunWriter) -> Iterator[str]:
    for record in records:
        writer.note(record)
        yield to_line(record)


def same_extent(writer: RunWriter, earlier: Mapping[str, Any]) -> Extent:
    """Return the extent of a run that has all its records: the same cases, as partial as before."""
    keys = {key for key, _ in writer.rows}
    return Extent(keys, keys, earlier=earlier)


def check_observed(run: StoredRun) -> None:
    """Raise SettingsError if a run does not store all its observations: cut texts would score differently."""
    if not (run.path / OBSERVATIONS).exists():
        raise SettingsError(
            f"run {run.run_id} keeps no {OBSERVATIONS}, which this needs: it was run with --rageval-redact, or the "
            "file was not brought along; run it anew"
        )
    check_observations(run.path)


# ── the plan ──────────────────────────────────────────────────────────────────────────────────────────────────


def plan_again(
    run: StoredRun,
    current: Settings,
    root: Path,
    *,
    metrics: Sequence[str] = (),
    judging: Mapping[str, Any] | None = None,
) -> Plan:
    """Return the run's own plan with additional `metrics`; `judging` holds settings that replace the run's.

    Texts in its files stay full or cut.
    """
    overriding: dict[str, Any] = {
        "description": run.finished_metrics["description"],
        "store_full_text": _has_full_texts(run),
        "save_traces": True,
        "redact": False,
        "update_baseline": False,
    }
    settings = settings_of(run, current).model_copy(update=overriding | dict(judging or {}))
    if metrics:
        enabled = (*(settings.enabled or ()), *metrics)
        settings = settings.model_copy(update={"enabled": enabled, "retrieval_only": False})
    return plan_of(run, settings, root, tuple(metrics))


def _has_full_texts(run: StoredRun) -> bool:
    """Return True if a text is longer than the cut, which only `store_full_text` allows."""
    for record in run.records():
        texts = [record["question"], record["answer"]]
        texts += [chunk["text"] for chunk in record["retrieved_chunks"]]
        if any(len(text or "") > CUT + 1 for text in texts):
            return True
    return False


# ── values from records, which are not computed again ─────────────────────────────────────────────────────────


def _has_all(record: Line, names: Iterable[str]) -> bool:
    """Return True if a record has a score, or the reason for none, by each of these measures."""
    return all(name in record["scores"] or name in record["skipped_metrics"] for name in names)


def _stored_scores(record: Line, names: Iterable[str]) -> dict[str, Score | NotApplicable]:
    """Return what these measures gave to a trial, by its record."""
    scores = record["scores"]
    details = record["score_details"]
    skipped = record["skipped_metrics"]
    unobserved = record["verdict"].get("unobserved", ())
    stored: dict[str, Score | NotApplicable] = {}
    for name in names:
        if name in scores:
            stored[name] = Score(scores[name], details.get(name, {}))
        else:
            stored[name] = NotApplicable(skipped[name], name in unobserved)
    return stored


def _with_stored_rewrite(result: CaseResult, record: Line, names: Sequence[str]) -> CaseResult:
    """Return a result with the recorded scores by these measures of the case asked as its rewrite."""
    if result.rewritten is None or "rewrite" not in record:
        return result
    scores = dict(result.rewritten.scores)
    recorded = record["rewrite"]["scores"]
    for name in names:
        if name in recorded:
            scores[name] = recorded[name]
    return replace(result, rewritten=replace(result.rewritten, scores=scores))


def stored_run_scores(plan: Plan, metrics: Mapping[str, Any]) -> dict[str, RunScore]:
    """Return what a metrics.json says of the project's own run-level metrics, which only pytest can compute."""
    described = [measure.name for measure in plan.run_measures if is_described_measure(measure)]
    stored = {name: metrics["metrics"].get(name, {}) for name in described}
    return {name: RunScore(metric.get("mean"), metric.get("error")) for name, metric in stored.items()}
