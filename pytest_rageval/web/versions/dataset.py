"""A dataset, which is cases in versions: what a version says of itself."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from pytest_rageval.web.versions.kept_version import KeptVersion


class DatasetAbout(BaseModel):
    """What a person says of a dataset.

    origin  the files that its cases were read from, as they were called
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    description: str = ""
    tags: tuple[str, ...] = ()
    origin: str = ""


class DatasetVersion(KeptVersion):
    """A version of a dataset as it is kept; the cases stand in its file.

    cases  how many there are; None where nothing says it
    """

    about: DatasetAbout
    cases: int | None = None

    @property
    def name(self) -> str:
        return self.about.name
