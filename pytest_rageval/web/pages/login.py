"""The login page: the app's token against a cookie, and away with that cookie."""

from __future__ import annotations

import hmac
import ipaddress
import threading
import time
from collections import OrderedDict, deque

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
"""Wrong tokens of one address after which no more are looked at for a while: guessing must take for ever."""
MOST_ADDRESSES = 10_000
"""That are remembered; those whose last failure is longest ago go."""

router = APIRouter()


class LoginForm(BaseModel):
    token: str


class LoginFailures:
    """When wrong tokens were given, by address: who guesses keeps nobody else out."""

    def __init__(self) -> None:
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def are_too_many(self, address: str) -> bool:
        with self._lock:
            times = self._times.get(network_of(address))
            return times is not None and len(times) == FAILURES and time.monotonic() - times[0] < WITHIN_S

    def add(self, address: str) -> None:
        with self._lock:
            network = network_of(address)
            self._times.setdefault(network, deque(maxlen=FAILURES)).append(time.monotonic())
            self._times.move_to_end(network)
            while len(self._times) > MOST_ADDRESSES:
                self._times.popitem(last=False)


def network_of(address: str) -> str:
    """What one person has: an IPv4 address, or of IPv6 the 64 bits that a provider gives to a household."""
    try:
        number = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(number, ipaddress.IPv4Address):
        return str(number)
    return str(number.ipv4_mapped or ipaddress.ip_network((number, 64), strict=False))


@router.get("/login")
def login_page(request: Request) -> Response:
    return page(request, "login.html", form=FormState[LoginForm]())


@router.post("/login")
def log_in(request: Request, submitted: Submitted, site: TheSite) -> Response:
    """Take the token: a new session that has given it, so that a name known before is worth nothing."""
    failures: LoginFailures = request.app.state.login_failures
    address = request.client.host if request.client is not None else ""
    if failures.are_too_many(address):
        raise HTTPException(429, "Too many wrong tokens; wait a minute.", {"Retry-After": str(int(WITHIN_S))})
    form, token = read_form(LoginForm, submitted), site.settings.token
    if token is None:
        return see("/")
    given = form.model.token if form.model else ""
    if not hmac.compare_digest(given.encode(), token.encode()):
        failures.add(address)
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
