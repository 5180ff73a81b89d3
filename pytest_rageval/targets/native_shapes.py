"""The shapes of a native response, as pydantic reads them: the types of the model, and where each member stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from pytest_rageval.io.expected import Expects
from pytest_rageval.model import Chunk, Edge, FolderSelection, Json, Reference, ToolCall, Trace


def _edge(value: Json) -> Edge:
    try:
        return Edge.parse(value)
    except ValueError:
        raise PydanticCustomError("edge_type", "Input should be an edge") from None


_AN_EDGE = Expects("an edge: 's -p-> o' or {subject, predicate, object}")


@dataclass(frozen=True, slots=True)
class _Trace(Trace):
    """A trace with its edges as they are written."""

    kg_edges: tuple[Annotated[Any, AfterValidator(_edge), _AN_EDGE], ...] | None = None


@dataclass(frozen=True)
class Debug:
    """The members of `debug`; `extra` holds unknown ones."""

    retrieved_chunks: tuple[Chunk, ...] | None = None
    folder_selection: FolderSelection | None = None
    latency: Mapping[str, float | None] | None = None
    trace: _Trace | None = None
    indexing_coverage: Mapping[str, Json] | None = None
    usage: Mapping[str, Json] | None = None
    versions: Mapping[str, Json] | None = None
    extra: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class NativeResponse:
    """A native response: its members at the top level."""

    answer: str | None = None
    references: tuple[Reference, ...] | None = None
    abstained: bool | None = None
    abstain_reason: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    debug: Debug | None = None
    extra: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class FlatResponse(Debug, NativeResponse):
    """A response that may have the members of `debug` at its top level."""
