"""What counts as a secret, in which spellings it is found, and what is left as it is."""

from __future__ import annotations

import base64
import html
import json
from typing import Any

import pytest

from pytest_rageval.config.settings import Settings
from pytest_rageval.io.masking import Mask, public_params, public_target, public_url, secrets_of_headers
from pytest_rageval.text import cut

pytestmark = pytest.mark.reliability("secrets", "spellings of a key", costs="leak")


def the_settings(**told: Any) -> Settings:
    return Settings.model_validate(told)


def masked(text: str, settings: Settings, environment: dict[str, str]) -> str:
    return Mask(settings.secrets(environment)).text(text)


def test_words_and_short_values_of_the_environment_are_no_secrets():
    environment = {
        "POSTGRES_PASSWORD": "postgres",
        "SORT_KEY": "timestamp",
        "SHORT_TOKEN": "abc",
        "HOME": "/home/ann/of/long/name",
    }
    text = "postgres sorts by timestamp in /home/ann/of/long/name abc"
    assert masked(text, the_settings(), environment) == text


@pytest.mark.parametrize("secret", ["abcdefgh", "a/b/c/d/e", "a+b=c&d<e>'f\"", "naïve-sécret", "two words and more"])
@pytest.mark.parametrize("spell", [str, lambda s: json.dumps(s)[1:-1] if s.isascii() and '"' not in s else s])
def test_a_secret_is_found_as_it_is_spelt(secret: str, spell: Any):
    assert Mask([secret]).text(f"x {spell(secret)} y") == "x *** y"


@pytest.mark.parametrize("within", ["{}", "both ' and \" {}", "+{}"])
def test_a_secret_in_json_in_html_is_found_as_a_log_prints_its_bytes(within: str):
    written = html.escape(json.dumps({"token": "pa\\'Zq7Xw9<param>"}))
    assert "Zq7" not in Mask(["pa\\'Zq7Xw9<param>"]).text(repr(within.format(written).encode()))


def test_what_is_cut_off_of_a_secret_goes_as_well():
    mask = Mask(["sk-0123456789abcdef"])
    assert mask.message("refused: sk-0123456…") == "refused: ***…"
    assert mask.message("refused: sk-0123456… (at bot.py:3)") == "refused: ***… (at bot.py:3)"
    assert mask.message("refused: sk-… and sk-0123456 is no more") == "refused: sk-… and sk-0123456 is no more"
    assert mask.text("'sk-01...' and …89abcdef, sk-01 and …cde") == "'***...' and …***, sk-01 and …cde"


@pytest.mark.parametrize("length", [*range(4, 18)])
def test_a_secret_cut_anywhere_leaves_nothing_that_could_be_guessed_from(length: int):
    secret = "sk-0123456789abcdef"
    mask = Mask([secret])
    for shown in (cut(f"x {secret} y", 2 + length + 1), f"x {secret[:length]!r}...", f"...{secret[-length:]} y"):
        assert secret[:4] not in mask.text(shown)
        assert secret[-4:] not in mask.text(shown)


KEY_BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"
AWS_SECRET = "/wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY0"
PEM = f"-----BEGIN PRIVATE KEY-----\n{KEY_BODY}\nq1W2e3R4t5Y6u7I8=\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        *((name, "Xq7-long-enough-9", "Xq7-long-enough-9") for name in (
            "DB_PASSWORD", "PGPASSWORD", "SMTP_PASSWD",
            "FTP_PWD", "CLIENT_SECRET", "GH_TOKEN", "BOT_KEY", "BOT_API_KEY",
            "AZURE_CREDENTIAL", "APP_CREDENTIALS", "SERVICE_JWT", "SENTRY_DSN", "OPENAI_API_KEY_2", "bot_token",
        )),
        ("DATABASE_URL", "postgres://ann:Sup3r-pw@db.example/x", "Sup3r-pw"),
        ("MAIL", "smtp+tls://ann:Sup3r-pw@mail.example", base64.b64encode(b"ann:Sup3r-pw").decode()),
        ("https_proxy", "http://ann:Sup3r-pw@proxy:3128", "Sup3r-pw"),
        ("HTTP_PROXY", "ann:Sup3r-pw@proxy:3128", base64.b64encode(b"ann:Sup3r-pw").decode()),
        ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
        ("ODBC", "Server=x;Uid=ann;Pwd=Sup3r-pw;", "Sup3r-pw"),
        ("SIGNING_KEY", PEM, KEY_BODY),
        ("SIGNING", PEM, "q1W2e3R4t5Y6u7I8="),
        ("SIGNING_KEY", PEM.replace("\n", " "), KEY_BODY),
        ("GCP_CREDENTIALS", json.dumps({"private_key": PEM, "project": "mine"}), KEY_BODY),
        ("AWS_SECRET_ACCESS_KEY", AWS_SECRET, AWS_SECRET),
    ],
)  # fmt: skip
def test_values_of_the_environment_that_are_secrets_by_name_or_form(name: str, value: str, secret: str):
    assert masked(f"x {secret} y", the_settings(), {name: value}) == "x *** y"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PWD", "some-folder-of-long-name"), ("OLDPWD", "some-folder-of-long-name"), ("MONKEY", "some-text-of-length"),
        ("TLS_KEY", "/etc/ssl/private/server.pem"), ("TLS_KEY", "certs/production/server.key"),
        ("APP_CREDENTIALS", "~/.config/app/credentials.json"), ("CACHE_KEY", "12345678901234567890"),
        ("USE_TOKEN", "true"), ("REDIS_URL", "redis://:postgres@cache"), ("REPO", "ssh://git@example.org/long/path"),
        ("CA_BUNDLE", PEM.replace("PRIVATE KEY", "CERTIFICATE")),
    ],
)  # fmt: skip
def test_paths_numbers_words_and_what_is_public_are_none(name: str, value: str):
    text = f"{value} postgres git {KEY_BODY}"
    assert masked(text, the_settings(), {name: value}) == text


@pytest.mark.parametrize(
    "printed",
    [
        "[(b'Set-Cookie', b'sid=abcdefgh; Path=/')]", "{'authorization': 'Bearer abcdefgh'}",
        "header: Set-Cookie: sid=abcdefgh", r'send: b"GET / HTTP/1.1\r\nAuthorization: Bearer abcdefgh\r\n"',
        "[('x-api-key', 'abcdefgh')]",
    ],
)  # fmt: skip
def test_credentials_of_printed_headers_are_hidden_by_their_names(printed: str):
    assert "abcdefgh" not in Mask([]).output(printed)
    assert "***" in Mask([]).output(printed)


@pytest.mark.parametrize("text", ["{'author': 'Ann Example'}", "(b'Content-Type', b'text/html; x')", "cookie: yes"])
def test_other_headers_and_words_stay(text: str):
    assert Mask([]).output(text) == text


@pytest.mark.parametrize(
    "spec", ["htp:/ann:Sup3r-pw@h", "http//ann:Sup3r-pw@h", "http:ann:Sup3r-pw@h/x", "//ann:Sup3r-pw@h"]
)
def test_a_misspelt_url_gives_its_password_away_to_nobody(spec: str):
    assert "Sup3r" not in public_target(spec)
    assert "Sup3r" not in masked(spec, the_settings(target=spec), {})


@pytest.mark.parametrize(
    "spec",
    [
        "deepeval:faithfulness@openai:gpt-4o-2024-08-06", "deepeval:answer_relevancy@judge",
        "openai:org/model:free@host",
        "nli:vectara/hallucination@revision", "any-llm:bedrock/model-name:tag@eu", "module_name:function@elsewhere",
    ],
)  # fmt: skip
def test_no_part_of_a_specification_is_a_secret(spec: str):
    settings = the_settings(judge=spec)
    assert public_target(spec) == spec
    assert masked(f"{spec} says faithfulness", settings, {}) == f"{spec} says faithfulness"
    named_alike = {"JUDGE_KEY": spec, "METRIC_KEY": spec.partition(":")[2]}
    assert masked(f"{spec} says faithfulness", settings, named_alike) == f"{spec} says faithfulness"


SECRET_NAMES = """
PASSWORD DB_PASSWORD PGPASSWORD DB_PASSWORD_2 MYSQL_PWD FTP_PWD SMTP_PASSWD SSH_PASSPHRASE MAIL_PASS passwords
CLIENT_SECRET SECRETS SECRET_KEY_BASE clientSecret GH_TOKEN GITHUB_TOKENS API_TOKENS token accessToken access_token
refresh-token hf_token authtoken aws_session_token RAGEVAL_TARGET_TOKEN BOT_KEY BOT_KEYS OPENAI_API_KEY_2
OPENAI_API_KEY2 apikey api-key x-api-key Ocp-Apim-Subscription-Key x-functions-key AccountKey SharedAccessKey
SharedAccessSignature secretkey private_key AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AZURE_CREDENTIAL
GOOGLE_APPLICATION_CREDENTIALS SERVICE_JWT SENTRY_DSN SLACK_WEBHOOK SLACK_WEBHOOK_URL BASIC_AUTH NPM_CONFIG__AUTH
_auth _authToken auth X-Auth Authorization Proxy-Authorization STRIPE_SK SK LITELLM_BEARER bearer GITHUB_PAT Cookie
Set-Cookie Set-Cookie2 X-Amz-Signature X-Hub-Signature-256 sig sessionid X-Session session_id PHPSESSID
"""
OTHER_NAMES = """
AUTHOR AUTHORS AUTHORITY AUTHENTICATED AUTH_URL OAUTH_CLIENT_ID authType MONKEY TURKEY KEYBOARD KEYBOARD_LAYOUT
KEYWORDS TOKENIZER TOKENIZERS_PARALLELISM TOKENIZE MAX_TOKENS max_tokens max_completion_tokens prompt_tokens
TOKEN_LIMIT token_count SKU TASK TASK_ID DISK RISK ASK PWD OLDPWD PATH PATTERN PATCH COOKIECUTTER_DIR COOKIE_JAR_PATH
SECRETARY SECRET_NAME PASSENGER COMPASS BYPASS PASSTHROUGH DESKTOP_SESSION XDG_SESSION_ID SESSION_NAME SSH_AUTH_SOCK
SIGNAL SIGNATORY DESIGN PUBLIC_KEY sort_key cache_key case_key primary_key Idempotency-Key SharedAccessKeyName
KEY_FILE HOTKEY DSNAME WEBHOOK_PORT credentials_file BEARERS_COUNT Content-Type HOME USER LANG model question k author
monkey
"""


@pytest.mark.parametrize("name", [*SECRET_NAMES.split(), *OTHER_NAMES.split()])
def test_one_list_of_names_says_what_is_a_secret_wherever_it_stands(name: str):
    value = "Xq7-long-enough-9"
    is_secret = name in SECRET_NAMES.split()
    shown = "***" if is_secret else value
    assert masked(value, the_settings(), {name: value}) == shown
    assert masked(value, the_settings(params={name: value}), {}) == shown
    assert public_params({name: value}) == {name: shown}
    assert public_url(f"https://host/ask?{name}={value}") == f"https://host/ask?{name}={shown}"
    assert (value in secrets_of_headers({name: value})) == is_secret


@pytest.mark.parametrize("field", ["AccountKey", "SharedAccessKey", "Password", "Pwd", "SharedAccessSignature"])
def test_the_secret_of_a_connection_string_is_its_field_and_not_its_words(field: str):
    environment = {"STORAGE": f"DefaultEndpointsProtocol=https;AccountName=rageval-storage;{field}=Xq7+long/enough9==;"}
    assert masked("Xq7+long/enough9== of rageval-storage", the_settings(), environment) == "*** of rageval-storage"


def test_what_holds_no_secret_is_not_even_copied():
    value = {"a": ["text", ("more",)], "n": 1}
    assert Mask(["abcdefgh"]).value(value) is value
    assert Mask(["abcdefgh"]).value({"abcdefgh": ["x abcdefgh"]}) == {"***": ["x ***"]}
