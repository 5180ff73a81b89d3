"""Judges that ask a server: the one that a spec of such a kind names."""

from __future__ import annotations

from pytest_rageval.errors import JudgeUnavailable, ModelUnavailable, SettingsError
from pytest_rageval.io.masking import public_target
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.model.model_judge import ModelJudge
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.model_spec import chat_model, model_and_url
from pytest_rageval.text import printable


def served_judge(kind: str, rest: str, options: EndpointOptions | None) -> Judge:
    """The judge of the spec `KIND:REST`; the URL in it comes before that of the options.

    openai, anthropic    MODEL or MODEL@URL; without any URL, the provider's own host
    any-llm              PROVIDER/MODEL or PROVIDER/MODEL@URL
    embedding            MODEL@URL
    deepeval             METRIC@SPEC, the spec of the model that it asks
    http, https          what follows in the URL of a server of OpenAI's kind, with one model
    """
    options = options or EndpointOptions()
    try:
        if kind == "embedding":
            return _embedding(rest, options)
        if kind == "deepeval":
            return _deepeval(rest, options)
        return ModelJudge(chat_model(f"{kind}:{rest}", options))
    except SettingsError as error:
        shown = repr(printable(public_target(f"{kind}:{rest}")))
        kind_of_error = JudgeUnavailable if isinstance(error, ModelUnavailable) else SettingsError
        raise kind_of_error(*(f"judge {shown}: {problem}" for problem in error.problems)) from None


def _embedding(rest: str, options: EndpointOptions) -> Judge:
    from pytest_rageval.judges.embedding.embedding_judge import EmbeddingJudge

    model, url = model_and_url("embedding", rest)
    if (url := url or options.base_url) is None:
        raise SettingsError("no server; write it as embedding:MODEL@URL")
    return EmbeddingJudge(model, url, options)


def _deepeval(rest: str, options: EndpointOptions) -> Judge:
    from pytest_rageval.judges.deepeval.deepeval_judge import METRICS, DeepEvalJudge

    metric, _, spec = rest.partition("@")
    if metric not in METRICS:
        names = ", ".join(sorted(METRICS))
        raise SettingsError(f"metric {printable(metric)!r} is not one of {names}")
    if not spec:
        raise SettingsError(
            f"no model; write it as deepeval:{metric}@openai:MODEL or deepeval:{metric}@openai:MODEL@URL"
        )
    return DeepEvalJudge(metric, chat_model(spec, options))
