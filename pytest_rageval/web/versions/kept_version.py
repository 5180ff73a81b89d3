"""What every version says of itself, whether of an agent or of a dataset."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict


class KeptVersion(BaseModel):
    """A version as it is kept.

    slug     the name in addresses and on disk
    note     what changed, in the words of whoever saved it
    created  UTC, ISO 8601; empty where nothing says it
    problem  what is doubtful about the file, None where it is as it was written
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    slug: str
    number: int
    note: str = ""
    created: str = ""
    problem: str | None = None

    @property
    def name(self) -> str:
        """What people call it."""
        return self.slug

    @property
    def title(self) -> str:
        """`Shop bot v3`."""
        return f"{self.name} v{self.number}"


def saved_now() -> str:
    """The time that a version is saved at: UTC, ISO 8601, whole seconds."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
