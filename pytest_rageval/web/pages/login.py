"""The login page: the app's token against a cookie, and away with that cookie."""

from __future__ import annotations

import hmac
import time
from collections import deque
from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from pytest_rageval.web.forms.form_state import FormState, read_form
from pytest_rageval.web.forms.submitted import Submitted
from pytest_rageval.web.rendering import page, see
from pytest_rageval.web.security.session import BrowserSession
from pytest_rageval.web.site import TheSite

FAILURES, WITHIN_S = 20, 60.0
"""Wrong tokens after which no more are looked at for a while: guessing must take for ever."""

router = APIRouter()


class LoginForm(BaseModel):
    token: str


@dataclass
class LoginFailures:
    """When wrong tokens were given."""

    times: deque[float] = field(default_factory=lambda: deque(maxlen=FAILURES))

    @property
    def are_too_many(self) -> bool:
        return len(self.times) == FAILURES and time.monotonic() - self.times[0] < WITHIN_S

    def add(self) -> None:
        self.times.append(time.monotonic())


@router.get("/login")
def login_page(request: Request) -> Response:
    return page(request, "login.html", form=FormState[LoginForm]())


@router.post("/login")
def log_in(request: Request, submitted: Submitted, site: TheSite) -> Response:
    """Take the token: a new session that has given it, so that a name known before is worth nothing."""
    failures: LoginFailures = request.app.state.login_failures
    if failures.are_too_many:
        raise HTTPException(429, "Too many wrong tokens; wait a minute.", {"Retry-After": str(int(WITHIN_S))})
    form, token = read_form(LoginForm, submitted), site.settings.token
    if token is None:
        return see("/")
    given = form.model.token if form.model else ""
    if not hmac.compare_digest(given.encode(), token.encode()):
        failures.add()
        wrong = FormState[LoginForm]().refused("token", "This is not the token.")
        return page(request, "login.html", status=403, form=wrong)
    return _with_cookie(request, token)


@router.post("/logout")
def log_out(request: Request) -> Response:
    return _with_cookie(request, None)


def _with_cookie(request: Request, token: str | None) -> Response:
    session: BrowserSession = request.state.session
    response = see("/" if token else "/login")
    response.headers["Set-Cookie"] = session.renewed().set_cookie(token=token)
    return response
