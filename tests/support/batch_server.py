"""A server of models with the batch interfaces of OpenAI and Anthropic."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from judge_server import JudgeServer, _anthropic, _fitting, _openai

Result = dict[str, Any]


class BatchServer(JudgeServer):
    """The batch interfaces of OpenAI and Anthropic, as their references describe them.

    states    what the batches say in turn before they have ended, each once
    is_ready  the batches have ended
    ends_as   OpenAI's status of an ended batch, if none of its requests expired
    fate      what becomes of the request of a number: None succeeds, else a code such as `expired`
    """

    def __init__(self, *replies: object, fate: Callable[[int], str | None] = lambda _: None, **options: Any) -> None:
        super().__init__(*replies, **options)
        self.is_ready, self.fate, self.ends_as = True, fate, "completed"
        self.states: list[str] = []
        self.names: list[Any] = []
        self.begun_at = datetime.now(UTC)
        self.batches: list[list[Result]] = []
        self.files: list[bytes] = []
        self.keys: list[str] = []

    async def _route(self, connection: Any) -> None:
        request = connection.request
        path, method = request.path, request.method
        self.keys.append(request.headers.get("authorization") or request.headers.get("x-api-key", ""))
        reply: Any = None
        if path == "/v1/files":
            assert b'name="purpose"\r\n\r\nbatch' in request.body
            self.files.append(re.split(rb"filename=.*?\r\n\r\n", request.body, maxsplit=1, flags=re.S)[1])
            reply = {"id": f"file-{len(self.files)}", "purpose": "batch"}
        elif path.startswith(("/v1/batches?", "/v1/messages/batches?")):
            one = self._openai_state if "messages" not in path else self._anthropic_state
            reply = {"data": [one(number) for number in range(len(self.batches), 0, -1)], "has_more": False}
        elif path == "/v1/batches":
            asked = request.json
            self.names.append(asked["metadata"])
            assert (asked["endpoint"], asked["completion_window"]) == ("/v1/chat/completions", "24h")
            content = self.files[int(asked["input_file_id"].removeprefix("file-")) - 1].rpartition(b"\n--")[0]
            lines = [json.loads(line) for line in content.splitlines() if line.strip()]
            assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
            reply = self._begin([{"custom_id": line["custom_id"], "body": line["body"]} for line in lines])
        elif path == "/v1/messages/batches" and method == "POST":
            listed = request.json["requests"]
            self._begin([{"custom_id": each["custom_id"], "body": each["params"]} for each in listed])
            reply = self._anthropic_state(len(self.batches))
        elif found := re.fullmatch(r"/v1/batches/b-(\d+)", path):
            reply = self._openai_state(int(found[1]))
        elif found := re.fullmatch(r"/v1/messages/batches/b-(\d+)(/results)?", path):
            number = int(found[1])
            reply = self._anthropic_lines(number) if found[2] else self._anthropic_state(number)
        elif found := re.fullmatch(r"/v1/files/(out|err)-(\d+)/content", path):
            reply = self._openai_lines(int(found[2]), is_error=found[1] == "err")
        if reply is None:
            await super()._route(connection)
        else:
            body = reply if isinstance(reply, list) else [reply]
            await connection.reply(200, "\n".join(map(json.dumps, body)).encode())

    def _begin(self, requests: list[Result]) -> Result:
        ids = [each["custom_id"] for each in requests]
        assert len(ids) == len(set(ids))
        assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", each) for each in ids)
        self.batches.append(requests)
        return {"id": f"b-{len(self.batches)}", "status": "validating"}

    def _fates(self, number: int) -> list[tuple[Result, str | None]]:
        before = sum(map(len, self.batches[: number - 1]))
        return [(each, self.fate(before + at)) for at, each in enumerate(self.batches[number - 1])]

    def _message(self, shape: Any, body: Any) -> Any:
        reply = self.replies[min(self._answered, len(self.replies) - 1)] if self.replies else None
        self._answered += 1
        return shape(self, body, _fitting(body, self.score) if reply is None else reply)

    def _openai_state(self, number: int) -> Result:
        fates = [fate for _, fate in self._fates(number)]
        state: Result = {
            "id": f"b-{number}",
            "status": "in_progress",
            "request_counts": {"total": len(fates), "completed": 0},
        }
        state["metadata"] = self.names[number - 1] if self.names else None
        if self.states or not self.is_ready:
            return state | {"status": self.states.pop(0) if self.states else "in_progress"}
        done = fates.count(None)
        files = {"output_file_id": f"out-{number}" if done else None}
        files["error_file_id"] = f"err-{number}" if done < len(fates) else None
        status = "expired" if "expired" in fates else self.ends_as
        return state | files | {"status": status, "request_counts": {"total": len(fates), "completed": done}}

    def _openai_lines(self, number: int, *, is_error: bool) -> list[Result]:
        lines = []
        for each, fate in self._fates(number):
            line = {"id": "x", "custom_id": each["custom_id"], "response": None, "error": None}
            if fate == "400":
                body = {"error": {"message": "Unsupported parameter: seed", "type": "invalid_request_error"}}
                line["response"] = {"status_code": 400, "body": body}
            elif fate is not None:
                line["error"] = {"code": f"batch_{fate}", "message": "This request could not be executed in time."}
            else:
                line["response"] = {"status_code": 200, "body": self._message(_openai, each["body"])}
            if is_error == (fate is not None) and fate != "lost":
                lines.append(line)
        return lines[::-1]  # in any order

    def _anthropic_state(self, number: int) -> Result:
        size = len(self.batches[number - 1])
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        is_ended = self.is_ready and not self.states
        counts["succeeded" if is_ended else "processing"] = size
        ended = {"processing_status": "ended", "results_url": "https://elsewhere.invalid/results"}
        going = {"processing_status": self.states.pop(0) if self.states else "in_progress", "results_url": None}
        made = {"id": f"b-{number}", "created_at": self.begun_at.isoformat(), "request_counts": counts}
        return made | (ended if is_ended else going)

    def _anthropic_lines(self, number: int) -> list[Result]:
        lines = []
        for each, fate in self._fates(number):
            result: Result = {"type": fate}
            if fate is None:
                result = {"type": "succeeded", "message": self._message(_anthropic, each["body"])}
            elif fate == "errored":
                error = {"type": "invalid_request_error", "message": "max_tokens: too large"}
                result["error"] = {"type": "error", "error": error}
            if fate != "lost":
                lines.append({"custom_id": each["custom_id"], "result": result})
        return lines[::-1]
