"""A dataset, which is cases in versions: what a version says of itself."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class DatasetAbout(BaseModel):
    """What a person says of a dataset.

    origin  the files that its cases were read from, as they were called
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    origin: str = ""


class DatasetVersion(BaseModel):
    """A version of a dataset as it is kept; the cases stand in its file.

    slug     the dataset's name in addresses and on disk
    note     what changed, in the words of whoever saved it
    created  UTC, ISO 8601; empty where nothing says it
    cases    how many there are; None where nothing says it
    problem  what is doubtful about the file, None where it is as it was written
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    slug: str
    number: int
    about: DatasetAbout
    note: str = ""
    created: str = ""
    cases: int | None = None
    problem: str | None = None

    @property
    def title(self) -> str:
        """`Products v2`."""
        return f"{self.about.name} v{self.number}"
