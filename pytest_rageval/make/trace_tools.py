"""The tool calls of a trace: its spans of tools, each with arguments, result, error, and what a search retrieved.

Sources: OpenTelemetry's semantic conventions for generative AI, OpenInference, Langfuse and OpenLLMetry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_rageval.make.trace_spans import KIND, Span
from pytest_rageval.model import Json
from pytest_rageval.targets.tool_calls import contract_calls

TOOL_KINDS = frozenset({"tool", "execute_tool"})
TOOL_NAME = ("gen_ai.tool.name", "tool.name", "tool_call.function.name", "traceloop.entity.name")
ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "input.value",
    "traceloop.entity.input",
    "langfuse.observation.input",
    "input",
    "tool_call.function.arguments",
)
RESULT = (
    "gen_ai.tool.call.result",
    "output.value",
    "traceloop.entity.output",
    "langfuse.observation.output",
    "output",
)
ERROR = ("exception.message", "error.message", "error.type")
SERVER = ("mcp.server.name", "server.label")
_OPERATION = "execute_tool "
"""OpenTelemetry's names of spans begin so."""


def traced_calls(
    spans: Sequence[Span], chunks_of: Callable[[Sequence[Span]], list[dict[str, Json]] | None]
) -> list[Json] | None:
    """Return the tool calls of a trace in the form of the contract, in the order of their starts; None without any.

    chunks_of  reads the documents of spans: those of a retrieving span within a tool are what the tool retrieved
    """
    calls: list[Json] = []
    for span in spans:
        if not _is_tool(span):
            continue
        inner = [other for other in spans if other.parent_id == span.span_id and other.is_retrieval]
        call: dict[str, Json] = {
            "name": _first(span, TOOL_NAME) or span.name.removeprefix(_OPERATION),
            "arguments": _first(span, ARGUMENTS),
            "result": _first(span, RESULT),
            "error": _first(span, ERROR),
            "server": _first(span, SERVER),
            "retrieved_chunks": chunks_of(inner) if inner else None,
        }
        calls.append({name: value for name, value in call.items() if value is not None})
    return contract_calls(calls) if calls else None


def _is_tool(span: Span) -> bool:
    return any(str(span.attributes.get(name, "")).lower() in TOOL_KINDS for name in KIND)


def _first(span: Span, names: Sequence[str]) -> Json:
    for name in names:
        value = span.attributes.get(name)
        if value is not None and value != "":
            return value
    return None
