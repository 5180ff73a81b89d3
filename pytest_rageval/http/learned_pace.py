"""How many requests a server takes: the pace learned from its refusals, and a bucket of tokens per minute."""

from __future__ import annotations

import math

FIRST_MOST = 100.0
"""Requests a second tried at most after the first refusal."""
LEAST = 0.1
"""Requests a second tried at least: a server that refuses everything is asked once in ten seconds."""
DOUBLING_S = 0.25
"""Seconds in which the pace doubles while the server's limit is unknown; it takes at least one success."""
RETURN_S = 10.0
LONGEST_RETURN_S = 120.0
RETURN_REQUESTS = 30
"""The pace is back where it was refused after RETURN_S, or after this many requests where these take longer."""
SETTLED, STEADY = 20, 8
"""Successes after which a refusal means that the pace was a little too high: it falls by 5, or by 10 percent."""


class LearnedPace:
    """The requests a second that a server takes, learned from its refusals.

    Concurrency alone cannot hold a rate: a server that replies in 5 ms to five requests a second refuses most of what
    even a single caller sends. Each refusal lowers the pace. It then returns to the refused pace along a cubic curve
    (as TCP CUBIC does): quickly at first, slowly near that pace, and beyond it to find out whether more is possible.
    Until one refusal has come at a known pace, each success raises the pace.
    """

    def __init__(self) -> None:
        self._pace = math.inf
        """The pace after the last fall; while `_is_probing`, the current one."""
        self._refused_pace = math.inf
        self._is_probing = True
        self._fell_at = -math.inf
        self._rises_from = -math.inf
        self._good = 0
        """Successes since the last fall."""
        self._first_sent: float | None = None
        self._sent = self._all_good = 0

    @property
    def is_limited(self) -> bool:
        """Return True if the server has refused a call."""
        return self._pace < math.inf

    def at(self, now: float) -> float:
        """Return the pace in requests a second; infinity before the first refusal."""
        if self._is_probing:
            return self._pace
        # A slow server is probed by requests, not by seconds: ten seconds of one a minute would tell nothing.
        lasts = min(max(RETURN_S, RETURN_REQUESTS / self._refused_pace), LONGEST_RETURN_S)
        elapsed = max(0.0, now - self._rises_from)
        depth = 1 - self._pace / self._refused_pace
        return self._refused_pace * (1 + depth * ((elapsed - lasts) / lasts) ** 3)

    def note_sent(self, now: float) -> None:
        """Count a request that is about to be sent."""
        self._sent += 1
        if self._first_sent is None:
            self._first_sent = now

    def note_success(self) -> None:
        """Count a request that the server took."""
        self._good += 1
        self._all_good += 1
        if self._is_probing and self.is_limited:
            self._pace *= 2 ** (1 / max(1.0, self._pace * DOUBLING_S))

    def note_refusal(self, sent_at: float, now: float, pause: float) -> None:
        """Lower the pace, unless the request was sent before the last fall; `pause` is the server's Retry-After."""
        if sent_at < self._fell_at:
            # It went out at the old pace: one burst of refusals must lower the pace once.
            return
        if not self.is_limited:
            self._pace = self._first_guess(now, pause)
        elif self._is_probing and self._good == 0:
            # Not one success since the last fall: the guess was wrong by far.
            self._pace /= 2
        else:
            refused = self.at(now)
            if self._is_probing:
                share = 0.7
            elif self._good >= SETTLED:
                share = 0.95
            elif self._good >= STEADY:
                share = 0.9
            else:
                share = 0.75
            self._pace = refused * share
            # A pace that was refused early was far too high: the curve aims below it.
            self._refused_pace = refused if share >= 0.9 else refused * (1 + share) / 2
            self._is_probing = False
        if self._pace < LEAST:
            # At the least pace no curve is computed: the limit is looked for anew from below.
            self._pace = LEAST
            self._is_probing = True
        self._fell_at = now
        # Not before the pause is over, in which nothing is sent.
        self._rises_from = now + pause
        self._good = 0

    def _first_guess(self, now: float, pause: float) -> float:
        """Return the pace after the first refusal.

        A pause makes each wrong guess expensive: begin below, with what the server took so far within the pause.
        Without one, begin above, with half of what was sent.
        """
        if pause > 0:
            return max(1, self._all_good) / max(1.0, pause)
        # Calls of one moment have no time between them.
        elapsed = max(0.01, now - (self._first_sent or now))
        return min(FIRST_MOST, self._sent / elapsed) / 2


BURST_SECONDS = 5.0
"""Tokens for this many seconds may be used at once."""
CREDIT_SECONDS = 15.0
"""Overestimated tokens for at most this many seconds are credited; a long pause adds no more than a burst."""


class TokenBucket:
    """The tokens that may be used now, out of a limit per minute."""

    def __init__(self, per_minute: float, now: float) -> None:
        self._a_second = per_minute / 60
        self._level = self._a_second * BURST_SECONDS
        self._counted_at = now

    def settle(self, now: float) -> None:
        """Cut what time has added to a burst; call it when a request begins to wait for its tokens."""
        burst = self._a_second * BURST_SECONDS
        self._level = max(self._level, min(burst, self._level_at(now)))
        self._counted_at = now

    def ready_at(self, tokens: float) -> float:
        """Return when this many tokens are there, more than a burst of them too."""
        return self._counted_at + max(0.0, tokens - self._level) / self._a_second

    def take(self, tokens: float, now: float) -> None:
        """Use tokens."""
        self._level = self._level_at(now) - tokens
        self._counted_at = now

    def give_back(self, tokens: float) -> None:
        """Return tokens that were reserved and not used, or charge more if `tokens` is negative."""
        self._level = min(self._level + tokens, self._a_second * CREDIT_SECONDS)

    def _level_at(self, now: float) -> float:
        return self._level + self._a_second * (now - self._counted_at)
