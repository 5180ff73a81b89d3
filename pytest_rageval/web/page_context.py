"""The base of what the templates of pages get: a class for each template, with a sentence for each of its fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, kw_only=True)
class PageContext:
    """The variables of a template. Its docstrings are their documentation; a test holds them against the template."""

    template: ClassVar[str]
