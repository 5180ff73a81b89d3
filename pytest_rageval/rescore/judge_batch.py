"""Judging of a stored run in batches: the submission, in a file of the run's folder, and the replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pytest_rageval.errors import ModelFailure, SettingsError
from pytest_rageval.io.atomic import read_json, write_json
from pytest_rageval.judges.cache.cached_judge import CachedJudge
from pytest_rageval.judges.checked_judge import CheckedJudge
from pytest_rageval.judges.judge import BaseJudge, JudgementCache
from pytest_rageval.judges.model_judge import ModelJudge
from pytest_rageval.llm.batch import PRICE, BatchClient, BatchExchange, BatchReply, BatchState
from pytest_rageval.llm.wire import Wire
from pytest_rageval.model import Json
from pytest_rageval.providers import BATCHED
from pytest_rageval.rescore.rejudge import Rejudge
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.reader import StoredRun

FILE = "judge_batch.json"


@dataclass(frozen=True, slots=True)
class Submission:
    """What was submitted for a run.

    judging    the settings that replaced the run's
    metrics    the metrics to judge beside those of the run
    batches    the provider's ids
    requests   the names of all requests in them
    submitted  UTC, of the last batch
    begun      the names of requests whose batch was about to be submitted when the file was written, and when: unless
               the process was killed at that moment, none
    collected  UTC, when the run was scored with the replies; None before
    """

    judging: Mapping[str, Any]
    metrics: tuple[str, ...]
    batches: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    submitted: str | None = None
    begun: tuple[tuple[str, ...], str] | None = None
    collected: str | None = None


def submission_of(run: StoredRun) -> Submission | None:
    """Return what was submitted for a run; None if nothing was. SettingsError for a file that is none."""
    path = run.path / FILE
    if not path.exists():
        return None
    try:
        return TypeAdapter(Submission).validate_python(read_json(path, "what was submitted"))
    except ValidationError:
        raise SettingsError(f"{path}: not a file of submitted batches; remove it and submit anew") from None


def check_submission(run: StoredRun) -> None:
    """Raise SettingsError if a batch of the run waits for its collection."""
    before = submission_of(run)
    if before is not None and before.collected is None:
        since = before.begun[1] if before.begun is not None else before.submitted
        raise SettingsError(
            f"run {run.run_id} has a batch under way since {since}: `rageval judge {run.run_id} --collect` fetches it; "
            f"remove {run.path / FILE} to forget it"
        )


@dataclass(slots=True)
class BatchedRun:
    """A stored run that is judged by batches: its requests and their replies.

    make_judge  makes the judge, a new one for each event loop
    cache       the judge cache, which is read only until all replies are there
    """

    run: StoredRun
    plan: Plan
    submission: Submission
    make_judge: Callable[[], BaseJudge]
    cache: JudgementCache | None
    client: BatchClient = field(default_factory=BatchClient)

    def deferring_judge(self) -> ModelJudge:
        """Return a judge whose requests go to the batch; raise SettingsError if its provider takes none."""
        judge = self.make_judge()
        if not isinstance(judge, ModelJudge) or judge.batch_wire is None:
            raise SettingsError(f"judge {judge.model!r}: batches are for {' and '.join(BATCHED)}")
        # The fences of the run: requests are known by their text, which a new secret would change.
        RunFolder(self.run.path).give_secret(judge)
        judge.defer_to(self.client)
        return judge

    def gather(self, watch: Callable[[int], None]) -> dict[str, Json]:
        """Put all answers to the judge, and return the requests that no reply was collected for."""
        self.client.waiting.clear()
        is_anew = self.plan.settings.judge_cache == "refresh"
        # What the requests cost is counted once, at the end, and so nothing is stored before.
        deferring = self.deferring_judge()
        mask = self.plan.mask
        judge = CheckedJudge(deferring, mask)
        if self.cache is not None and not is_anew:
            judge = CachedJudge(deferring, self.cache, "read", mask)
        Rejudge(self.run, self.plan, judge, watch).ask_all()
        return self.client.waiting

    def check_price(self, most: float | None) -> None:
        """Raise SettingsError if the waiting requests are likely to cost more than the limit."""
        tariff = self.make_judge().tariff
        dollars = tariff and tariff.estimate(map(str, self.client.waiting.values()))
        if most is not None and dollars is not None and dollars * PRICE > most:
            likely = f"the batch is likely to cost ${dollars * PRICE:.2f}"
            raise SettingsError(f"--max-cost: {likely}, more than ${most:.2f}")

    def submit(self) -> None:
        """Submit the waiting requests; each portion is noted at once, in case that a later one fails."""
        try:
            asyncio.run(self._submit())
        except ModelFailure as failure:
            raise SettingsError(f"the batch cannot be submitted: {failure}") from None

    async def _submit(self) -> None:
        async with self._exchange() as (wire, exchange):
            for portion in self.client.portions():
                # Noted before it is sent: after a kill in between, `fetch` looks for the batch at the provider.
                begun = (tuple(portion), _now())
                self._note(replace(self.submission, begun=begun, collected=None))
                try:
                    batch = await wire.submit_batch(exchange, portion)
                except ModelFailure as failure:
                    # After a lost connection or a failure of the server, it may have begun all the same.
                    if failure.status is not None and failure.status < 500:
                        self._note_none()
                    raise
                self._note_batch(batch)

    def fetch(self) -> list[BatchState]:
        """Fetch the replies of all batches that have ended; return the states of all."""
        try:
            return asyncio.run(self._fetch())
        except (ModelFailure, ValueError) as failure:
            raise SettingsError(f"the batch cannot be fetched: {failure}; try again later") from None

    async def _fetch(self) -> list[BatchState]:
        async with self._exchange() as (wire, exchange):
            if self.submission.begun is not None:
                # Killed before the answer to a submission was noted.
                batch = await wire.find_batch(exchange, *self.submission.begun, self.submission.batches)
                if batch is None:
                    self._note_none()
                else:
                    self._note_batch(batch)
            states = [await wire.batch_state(exchange, batch) for batch in self.submission.batches]
            for url in chain.from_iterable(state.results for state in states):
                await self._read_replies(url, wire, exchange)
            return states

    async def _read_replies(self, url: str, wire: Wire, exchange: BatchExchange) -> None:
        replies = self.client.replies
        async for line in exchange.lines(url):
            key, reply = wire.batch_reply(line)
            # A request that was sent in two batches may have failed in one of them only.
            if key not in replies or reply.status == 200:
                replies[key] = reply

    def give_up(self, states: Iterable[BatchState]) -> None:
        """Let the waiting requests fail that ended batches have left without a reply."""
        words = "; ".join(dict.fromkeys(state.words for state in states))
        # Only those that were in a batch: others wait to be submitted.
        for key in self.client.waiting.keys() & {*self.submission.requests}:
            self.client.replies[key] = BatchReply(0, problem=f"no reply in its batch ({words})")
            del self.client.waiting[key]

    def end(self) -> None:
        """Note that the run was scored."""
        self._note(replace(self.submission, collected=_now()))

    def _note_none(self) -> None:
        """Note that what was begun is no batch; without any, forget the submission."""
        self._note(replace(self.submission, begun=None))
        if not self.submission.batches:
            (self.run.path / FILE).unlink()

    def _note_batch(self, batch: str) -> None:
        before = self.submission
        assert before.begun is not None
        portion, _ = before.begun
        noted = replace(
            before,
            batches=(*before.batches, batch),
            requests=(*before.requests, *portion),
            submitted=_now(),
            begun=None,
        )
        self._note(noted)

    @asynccontextmanager
    async def _exchange(self) -> AsyncIterator[tuple[Wire, BatchExchange]]:
        judge = self.deferring_judge()
        assert judge.batch_wire is not None
        exchange = judge.defer_to(self.client)
        try:
            yield judge.batch_wire, exchange
        finally:
            await exchange.aclose()

    def _note(self, submission: Submission) -> None:
        self.submission = submission
        write_json(self.run.path / FILE, asdict(submission))


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
