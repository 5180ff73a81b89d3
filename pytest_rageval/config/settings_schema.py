"""JSON Schema of `[tool.rageval]`, from the models that read it."""

from __future__ import annotations

from typing import Any

from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import TABLE_ONLY_AS_OPTION


def settings_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the table. What ties keys together is checked by loading alone."""
    schema = Settings.model_json_schema()
    fields: dict[str, Any] = schema["properties"]
    keys = {name: field for name, field in fields.items() if name not in TABLE_ONLY_AS_OPTION}
    api = {"url": {"type": "string"}, "mapping": fields["mapping"]}
    keys["target"] = {"anyOf": [fields["target"], {"type": "object", "properties": api, "additionalProperties": False}]}
    keys["metrics"] = {
        "type": "object",
        "properties": {"enabled": fields["enabled"]},
        "additionalProperties": fields["metric_options"]["additionalProperties"],
    }
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "[tool.rageval]"}
    untitled: dict[str, Any] = _untitled(schema | {"properties": keys} | about)
    return untitled | about


def _untitled(schema: Any) -> Any:
    """Without the titles that are made from names, and without null, which TOML cannot write."""
    if isinstance(schema, list):
        return [_untitled(each) for each in schema if each != {"type": "null"}]
    if not isinstance(schema, dict):
        return schema
    tidy = {key: _untitled(inner) for key, inner in schema.items() if not _is_idle(key, inner)}
    alternatives = tidy.get("anyOf")
    return {**tidy.pop("anyOf")[0], **tidy} if alternatives is not None and len(alternatives) == 1 else tidy


def _is_idle(key: str, inner: Any) -> bool:
    return (key == "title" and isinstance(inner, str)) or (key == "default" and inner is None)
