"""What is sent: the body of a native question, from what the case and the user set."""

from __future__ import annotations

from pytest_rageval.model import AskRequest, Json

ASK_PATH = "/api/v1/ask"
STATS_PATH = "/api/v1/index/stats"
CHUNKS_PATH = "/api/v1/index/chunks"


def ask_body(request: AskRequest) -> dict[str, Json]:
    """Question, k, scope, history and parameters that are set; the server's defaults stand for all others."""
    body: dict[str, Json] = {**request.params, "question": request.question, "k": request.k}
    if request.history is not None:
        body["history"] = [turn._asdict() for turn in request.history]
    if request.vaults:
        body["vaults"] = list(request.vaults)
    if request.folders:
        body["folders"] = list(request.folders)
    return body
