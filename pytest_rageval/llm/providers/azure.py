"""Chat endpoints of Azure OpenAI: deployments of OpenAI's models under names of one's own.

Source: Azure OpenAI's REST API reference, *Chat completions*.
"""

from __future__ import annotations

from urllib.parse import quote, urlsplit

from pytest_rageval.http.address import endpoint
from pytest_rageval.llm.credentials import AZURE_KEY, KeySource, api_key, judge_key
from pytest_rageval.llm.providers.openai import OpenAiWire

API_VERSION = "2024-10-21"


class AzureWire(OpenAiWire):
    """POST …/openai/deployments/DEPLOYMENT/chat/completions?api-version=…, with the key in a header `api-key`.

    The URL is that of the resource, or already that of the deployment.
    """

    api = "azure"

    def __init__(self, url: str, deployment: str, api_version: str | None, *, key_of: KeySource = judge_key) -> None:
        version = {"api-version": api_version or API_VERSION}
        is_whole = "/deployments/" in urlsplit(url).path
        below = "" if is_whole else f"/openai/deployments/{quote(deployment, safe='')}"
        self.chat_url = endpoint(url, f"{below}/chat/completions", **version)
        resource = url.partition("/openai/deployments/")[0]
        self.models_url = endpoint(resource, "/openai/models", **version)
        self.headers, self.key_name = api_key("api-key", key_of(self.chat_url, AZURE_KEY, ""))
