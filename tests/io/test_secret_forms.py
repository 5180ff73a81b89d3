"""Values are secret by their form, whatever the name of the variable; words of ordinary text never are."""

from __future__ import annotations

import json
import string
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.config.settings import Settings
from pytest_rageval.io.masking import Mask, public_url

pytestmark = pytest.mark.reliability("secrets", "secrets known by their form", costs="leak")

SECRET = "q7Xw9-Kp3Lm5zR"
FIELDS = """
password passwd pwd pass sig token api_key apikey apiKey access_token client_secret secret auth AccountKey
SharedAccessKey Password Pwd PWD key session_token private_key
"""
FORMS = {
    "query": "https://store.example/a?se=2027&{name}={value}&sp=r",
    "query alone": "?sv=2021&{name}={value}",
    "fragment": "https://store.example/a#{name}={value}",
    "connection string": "Server=tcp:db.example,1433;User Id=bot;{name}={value};Encrypt=True",
    "connection string with spaces": "Server = db; {name} = {value} ;Encrypt=True",
    "cache": "cache.example:6380,{name}={value},ssl=True",
    "libpq": "host=db.example user=bot {name}='{value}' dbname=x",
    "properties": "-Dproxy.host=x -Dproxy.{name}={value}",
    "json": '{{"llm": {{"deep": [{{"{name}": "{value}"}}]}}, "k": 5}}',
    "json list": '{{"{name}": ["{value}"]}}',
    "json in json": '{{"llm": "{{\\"{name}\\": \\"{value}\\"}}"}}',
    "connection string in json": '{{"store": "Server=x;{name}={value};"}}',
    "broken json": "{{'llm': {{'{name}': '{value}', }}}}",
    "yaml": "llm:\n  model: small\n  {name}: {value}\nk: 5",
    "quoted yaml": 'llm:\n  - {name}: "{value}"',
    "flow yaml": "{{llm: {{{name}: {value}, k: 5}}}}",
    "header": "{name}: Bearer {value}",
}
ALPHABET = string.ascii_letters + string.digits + "-_+/~!"
SECRETS = st.text(ALPHABET, min_size=9, max_size=60).filter(
    lambda text: any(c.isdigit() for c in text) and any(c.isalpha() for c in text) and text[0] in string.ascii_letters
)
WORDS = """
true false none null yes postgres basic bearer token password secret faithfulness correctness changeit default
localhost development Anonymous oauth2 5432 2027
"""


def mask_of(value: str, **settings: str) -> Mask:
    return Mask(Settings.model_validate(settings).secrets({"BOT_CONFIG": value}))


@pytest.mark.parametrize("name", FIELDS.split())
@pytest.mark.parametrize("form", FORMS)
def test_a_secret_within_a_value_is_masked_wherever_it_is_repeated(form: str, name: str):
    mask = mask_of(FORMS[form].format(name=name, value=SECRET))
    assert mask.text(f"refused {SECRET} for k 5") == "refused *** for k 5"


@given(SECRETS)
@pytest.mark.parametrize("form", ["query", "connection string", "json", "yaml"])
def test_any_random_value_is_masked(form: str, secret: str):
    written = quote(secret, safe="") if form == "query" else secret
    if "/" in secret and form != "json":
        secret = written = secret.replace("/", "-")
    mask = mask_of(FORMS[form].format(name="password", value=written))
    assert secret not in mask.text(f"x {secret} y")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("word", WORDS.split())
def test_a_word_is_no_secret_in_any_form(form: str, word: str):
    text = f"{word} stays in an answer, as do User Id and Encrypt"
    assert mask_of(FORMS[form].format(name="token", value=word)).text(text) == text


@pytest.mark.parametrize("form", FORMS)
def test_other_members_are_no_secrets(form: str):
    value = FORMS[form].format(name="model_name", value=SECRET)
    assert mask_of(value).text(value) == value


@pytest.mark.parametrize("value", ["/run/secrets/token_2", "${BOT_TOKEN_2}", "env:BOT_TOKEN_2", "12345678901", "1.5e9"])
def test_paths_numbers_and_placeholders_are_no_secrets(value: str):
    assert mask_of(f"Server=x;token={value};").text(f"x {value}") == f"x {value}"


@pytest.mark.parametrize(
    "written",
    [
        f"postgresql+psycopg://bot:{SECRET}@db.example/x", f"see amqp://bot:{SECRET}@mq.example", "ghp_" + "a1B2" * 9,
        "sk-proj-a1B2c3D4e5F6g7H8", "AIza" + "a1B2" * 9, "xoxb-123456789012-abcdef", "hf_" + "a1B2" * 8,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N", "AKIAIOSFODNN7EXAMPLE",
    ],
)  # fmt: skip
def test_passwords_of_urls_and_known_tokens_are_masked_in_the_environment_and_in_output(written: str):
    secret = SECRET if SECRET in written else written
    assert secret not in mask_of(f"x {written}").text(f"got {secret}!")
    assert secret not in Mask([]).output(f"RuntimeError: {written}")
    assert secret not in Mask([]).message(f"RuntimeError: {written}")


@pytest.mark.parametrize("name", ["password", "sig", "token", "api_key", "access_token", "client_secret", "AccountKey"])
def test_secret_fields_are_masked_in_output_although_nothing_else_has_them(name: str):
    text = f"cannot open https://x.example/a?{name}={SECRET}&se=1 or Server=x;{name}={SECRET};User=bot"
    for shown in (Mask([]).output(text), Mask([]).message(text)):
        assert SECRET not in shown
        assert "se=1" in shown
        assert "User=bot" in shown


@pytest.mark.parametrize(
    "text",
    [
        "the password is changed under Settings; token = none, auth=basic", "key=timing-issues-2027 of the cache",
        "deepeval:faithfulness@openai:gpt-4o-2024-08-06 says token_f1=0.53", "max_tokens=100000000 k=5",
        "https://host:8080/ask?question=what+is+my+password", "a:b@c", "sk-learn-and-its-estimators",
    ],
)  # fmt: skip
def test_ordinary_output_is_left_as_it_is(text: str):
    assert Mask([]).output(text) == text
    assert Mask([]).message(text) == text


def test_a_part_of_a_specification_is_no_secret_in_any_form():
    spec = "deepeval:faithfulness_metric2@openai:gpt-4o-2024-08-06"
    mask = mask_of(json.dumps({"token": "faithfulness_metric2", "auth": {"key": "gpt-4o-2024-08-06"}}), judge=spec)
    assert mask.text(spec) == spec


def test_pwd_in_a_query_is_a_password():
    assert public_url(f"https://host/a?pwd={SECRET}&k=5") == "https://host/a?pwd=***&k=5"
