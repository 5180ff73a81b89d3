"""A JSON API with a shape of its own: a template says what is sent, expressions say where the answer stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_rageval.errors import SettingsError, TargetError
from pytest_rageval.http.address import endpoint
from pytest_rageval.http.client import SlottedClient
from pytest_rageval.http.failures import HttpFailure
from pytest_rageval.io.masking import public_url
from pytest_rageval.llm.credentials import with_target_token
from pytest_rageval.model import Answer, AskRequest, Json
from pytest_rageval.targets.connection import USUAL, Connection
from pytest_rageval.targets.mapped.expressions import Expression, Table, response_table
from pytest_rageval.targets.mapped.template import filled, template_problems
from pytest_rageval.targets.native_contract import answer_from_record, data_from_body
from pytest_rageval.targets.values import Wrong

if TYPE_CHECKING:
    from pytest_rageval.config.tables import TargetMapping

PLACE = "target.mapping"
# Only said of an answer that abstains, and there may be none.
_OFTEN_ABSENT = frozenset({"abstain_reason"})


def checked_mapping(mapping: TargetMapping) -> Table:
    """The response's expressions, compiled; SettingsError names every problem of the mapping, one line each."""
    problems = list(template_problems(mapping.request, f"{PLACE}.request"))
    try:
        table = response_table(mapping.response, f"{PLACE}.response")
    except SettingsError as error:
        raise SettingsError(*problems, *error.problems) from None
    if problems:
        raise SettingsError(*problems)
    return table


class MappedTarget:
    """Asks a server as its mapping says. `name` is its URL without credentials.

    The mapping's path is appended to the URL, whose own path and query are kept.
    """

    def __init__(self, url: str, mapping: TargetMapping, connection: Connection = USUAL) -> None:
        self.name = public_url(url)
        self.url = url
        self._mapping = mapping
        self._response = checked_mapping(mapping)
        # Without a path in the mapping the URL is the address, to its last slash: servers tell /ask from /ask/.
        last_slash = "/" if urlsplit(url).path.endswith("/") else ""
        self._address = endpoint(url, mapping.path or last_slash)
        self._where = f"{mapping.method} {public_url(self._address)}"
        self._answers = 0
        self._found: set[str] = set()
        self._client = SlottedClient(
            headers=with_target_token(connection.headers, connection.environment), **connection.of_client
        )

    @property
    def notes(self) -> list[str]:
        """Fields that were mapped and never found: their metrics are not applicable, perhaps for a slip of the pen."""
        fields = self._response.fields.keys() - self._found - _OFTEN_ABSENT if self._answers else ()
        return [f"{PLACE}.response.{name} found nothing in any of {self._answers} responses" for name in sorted(fields)]

    async def ask(self, request: AskRequest) -> Answer:
        """One question; raises TargetError where no usable answer comes."""
        body = filled(self._mapping.request, request)
        try:
            reply = await self._client.request(self._mapping.method, self._address, json=body)
        except HttpFailure as failure:
            raise TargetError(failure.kind, str(failure), status=failure.status) from None
        if not reply.body.strip():
            raise TargetError("empty", f"{self._where}: the response has no body")
        return self._answer(data_from_body(reply.body, self._where))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _answer(self, data: Json) -> Answer:
        try:
            values: dict[str, Any] = self._response.find(data, "") or {}
        except Wrong as wrong:
            raise TargetError("invalid_response", f"{self._where}: mapped {wrong}") from None
        self._answers += 1
        self._found |= values.keys()
        answer = self._response.fields.get("answer")
        is_empty = not {"answer", "retrieved_chunks"} & values.keys() and values.get("abstained") is not True
        if isinstance(answer, Expression) and is_empty:
            message = f"{self._where}: {PLACE}.response.answer {answer.written!r} finds nothing in the response"
            raise TargetError("no_answer", message)
        return answer_from_record(values, f"{self._where}: mapped")
