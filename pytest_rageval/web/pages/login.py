"""The login page: exchange the app's token for a cookie, and the logout."""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.responses import Response

from pytest_rageval.web.forms import FormState, Submitted
from pytest_rageval.web.rendering import page, redirect
from pytest_rageval.web.security.sessions import TokenCheck

router = APIRouter()
BLANK = FormState[BaseModel]()


@router.get("/login")
def login_page(request: Request) -> Response:
    return page(request, "login.html", form=BLANK)


@router.post("/login")
def log_in(request: Request, submitted: Submitted) -> Response:
    """Check the token and start a new session with it, so that a known old one is useless (session fixation)."""
    tokens: TokenCheck = request.app.state.tokens
    if tokens.token is None:
        return redirect("/")
    if not tokens.accepts(str(submitted.get("token", "")), request.client.host if request.client else ""):
        wrong = BLANK.with_problem("token", "This is not the token.")
        return page(request, "login.html", status=403, form=wrong)
    tokens.log_in(request.session)
    return redirect("/")


@router.post("/logout")
def log_out(request: Request) -> Response:
    request.session.clear()
    return redirect("/login")
