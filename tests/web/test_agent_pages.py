"""Agents in the browser, without scripts: begun, edited, compared, and saved from two windows."""

from __future__ import annotations

import re

import pytest
from agent_forms import begin, edited, store_of
from web_app import WebApp, allow_code, errors_beside, sent_by, text_of

from pytest_rageval.web.versions.agent import default_prompt


def test_an_agent_is_begun_with_the_two_judged_metrics_at_the_default_threshold(app: WebApp):
    slug = begin(app, "Begun", target_kind="demo", description="what\nfor", tags="a, b", note="first")
    version = store_of(app).newest(slug)
    assert (version.number, version.note) == (1, "first")
    assert version.agent.thresholds == {"faithfulness": 0.7, "reference_match": 0.7}
    assert version.agent.target == "demo"
    assert version.agent.tags == ("a", "b")
    assert version.agent.description == "what\nfor"
    assert version.agent.metrics == ("reference_match", "faithfulness")
    page = app.page(f"/agents/{slug}")
    assert "v1, the newest" in page
    assert slug in app.page("/agents")


def test_a_judged_metric_that_is_turned_on_begins_with_the_default_threshold(app: WebApp):
    slug = begin(app, "Turned on", judge_kind="openai", judge_model="m")
    fields = edited(app, slug)
    assert "synthesis" not in store_of(app).newest(slug).agent.thresholds
    assert app.post(f"/agents/{slug}", fields | {"metrics": [*fields["metrics"], "synthesis"]}).status_code == 303
    assert store_of(app).newest(slug).agent.thresholds["synthesis"] == 0.7


@pytest.mark.parametrize(
    ("fields", "target"),
    [
        ({"target_kind": "http", "url": "http://localhost:1"}, "http://localhost:1"),
        ({"target_kind": "chat", "chat_model": "m"}, "openai:m"),
        ({"target_kind": "chat", "chat_provider": "ollama", "chat_model": "q:7b", "chat_url": "http://h:1"},
         "ollama:q:7b@http://h:1"),
        ({"target_kind": "chat", "chat_provider": "server", "chat_model": "m", "chat_url": "http://h:1"},
         "openai:m@http://h:1"),
        ({"target_kind": "python", "python": "bot:answer"}, "bot:answer"),
        ({"target_kind": "answers"}, None),
    ],
)  # fmt: skip
def test_each_kind_of_target_is_spelt_as_in_the_configuration_and_shown_again(
    app: WebApp, fields: dict[str, str], target: str | None
):
    allow_code(app.settings.root, "bot:answer")
    slug = begin(app, f"Target {target}", **fields)
    assert store_of(app).newest(slug).agent.target == target
    again = edited(app, slug)
    assert {name: again[name] for name in fields} == fields


def test_what_is_wrong_stands_beside_its_field_and_what_was_typed_stays(app: WebApp):
    sent = sent_by(app.page("/agents/new"), "/agents") | {
        "name": " ", "target_kind": "http", "url": "ftp", "k": "0", "param_value": "x", "threshold.mrr": "much",
        "metrics": "mrr", "description": "kept <b>&amp;",
    }  # fmt: skip
    response = app.post("/agents", sent)
    assert response.status_code == 422
    assert errors_beside(response.text).keys() == {"k", "name", "param_name", "url", "threshold.mrr"}
    assert '<a href="#k">k</a>' in response.text
    assert 'Not saved: <a href="#not-saved">5 fields to mend</a>' in response.text
    again = sent_by(response.text, "/agents")
    assert {name: again[name] for name in ("name", "url", "k", "threshold.mrr", "description", "metrics")} == {
        name: sent[name] for name in ("name", "url", "k", "threshold.mrr", "description", "metrics")
    }
    assert 'aria-describedby="url-errors url-hint"' in response.text
    assert re.search('<details class="more" open><summary>[0-9]+ other metrics: 1 on', response.text)
    assert not store_of(app).numbers("n")


def test_everything_that_is_wrong_is_said_at_once(app: WebApp):
    """A prompt, a gate, a metric and a parameter, although a threshold and the judge are wrong as well."""
    sent = sent_by(app.page("/agents/new"), "/agents") | {
        "name": "x" * 81, "threshold.mrr": "7", "metrics": ["mrr"], "judge_kind": "other", "judge_spec": "gpt",
        "gates": "token_f1 about 3", "other_metrics": "recal@5", "param_value": "3",
        "prompt.reference_match": "Rate {asnwer}", "prompt.faithfulness": "Is it so?",
        "header_name": "X-Api-Key", "header_value": "abcdefghijklmnop",
    }  # fmt: skip
    errors = errors_beside(app.post("/agents", sent).text)
    assert errors.keys() == {
        "name", "threshold.mrr", "judge_spec", "gates", "other_metrics", "param_name", "prompt.reference_match",
        "prompt.faithfulness", "header_name",
    }  # fmt: skip
    assert errors["prompt.reference_match"][0].startswith("unknown placeholder {asnwer}; did you mean")
    assert errors["other_metrics"] == ["unknown metric &#39;recal@5&#39;; did you mean &#39;recall&#39;?"]


@pytest.mark.parametrize("text", ["9" * 1900, "[" * 1900, "Infinity", '[1, {"a": null}]', "0.3", '{"a": [1]}'])
def test_parameters_of_any_kind_are_errors_of_their_field_or_taken(app: WebApp, text: str):
    sent = sent_by(app.page("/agents/new"), "/agents") | {"name": f"Odd {text[:8]} {len(text)}"}
    response = app.post("/agents", sent | {"param_name": "x", "param_value": text})
    assert response.status_code == 303 or errors_beside(response.text).keys() == {"param_name"}


def test_no_metric_at_all_is_refused(app: WebApp):
    sent = sent_by(app.page("/agents/new"), "/agents") | {"name": "None on", "metrics": []}
    assert "no metric is on" in app.post("/agents", sent).text


def test_a_name_that_is_taken_is_an_error_of_the_field(app: WebApp):
    begin(app, "Taken")
    sent = sent_by(app.page("/agents/new"), "/agents") | {"name": "taken"}
    response = app.post("/agents", sent)
    assert response.status_code == 422
    assert "is taken" in errors_beside(response.text)["name"][0]


def test_saving_a_change_makes_the_next_version_with_a_note_of_what_changed(app: WebApp):
    slug = begin(app, "Edited")
    unchanged = app.post(f"/agents/{slug}", edited(app, slug))
    assert "Nothing differs from version 1." in unchanged.text
    assert (
        app.post(f"/agents/{slug}", edited(app, slug, k="7", **{"threshold.faithfulness": "0.25"})).status_code == 303
    )
    version = store_of(app).newest(slug)
    assert (version.number, version.note) == (2, "k 5 → 7, threshold of faithfulness 0.7 → 0.25")
    page = app.page(f"/agents/{slug}/diff?before=1&after=2")
    assert "thresholds.faithfulness" in page
    assert re.search(r'<del title="only in v1">5</del><ins title="only in v2">7</ins>', page)
    old = app.page(f"/agents/{slug}/versions/1")
    assert "v1 of 2" in old
    again = sent_by(app.page(f"/agents/{slug}/edit?version=1"), f"/agents/{slug}")
    assert (again["k"], again["based_on"]) == ("5", "2")
    assert app.post(f"/agents/{slug}", again).status_code == 303
    assert store_of(app).newest(slug).agent == store_of(app).read(slug, 1).agent


def test_a_prompt_is_edited_shown_word_by_word_and_reset_without_a_script(app: WebApp):
    slug = begin(app, "Prompted")
    shipped = default_prompt("reference_match")
    fields = edited(app, slug)
    assert str(fields["prompt.reference_match"]).replace("\r\n", "\n") == shipped
    own = str(fields["prompt.reference_match"]).replace("an examiner", "a teacher")
    assert app.post(f"/agents/{slug}", fields | {"prompt.reference_match": own}).status_code == 303
    version = store_of(app).newest(slug)
    assert version.agent.prompts == {"reference_match": shipped.replace("an examiner", "a teacher")}
    assert version.note == "judge prompt of reference_match"
    assert "<ins" in app.page(f"/agents/{slug}/diff")
    assert f'value="reference_match" formaction="/agents/{slug}#prompt.reference_match"' in app.page(
        f"/agents/{slug}/edit"
    )
    reset = app.post(f"/agents/{slug}", edited(app, slug, name="typed meanwhile", reset="reference_match"))
    assert reset.status_code == 200
    after = sent_by(reset.text, f"/agents/{slug}")
    assert str(after["prompt.reference_match"]).replace("\r\n", "\n") == shipped
    assert after["name"] == "typed meanwhile"
    assert store_of(app).newest(slug).number == 2
    assert app.post(f"/agents/{slug}", after).status_code == 303
    assert store_of(app).newest(slug).agent.prompts == {}


def test_two_windows_that_save_one_agent_lose_nothing(app: WebApp):
    slug = begin(app, "Two windows")
    other = WebApp(app.settings, app.port)  # another browser, with a session of its own
    first, second = edited(other, slug, k="7", note="first window"), edited(app, slug, k="9", tags="second")
    assert other.post(f"/agents/{slug}", first).status_code == 303
    other.client.close()
    conflict = app.post(f"/agents/{slug}", second)
    assert conflict.status_code == 409
    assert "Version 2 was saved meanwhile by another window." in conflict.text
    assert "first window" in conflict.text
    assert '<del title="only in v2">7</del><ins title="only in yours">9</ins>' in conflict.text
    assert store_of(app).newest(slug).number == 2
    kept = sent_by(conflict.text, f"/agents/{slug}")
    assert (kept["k"], kept["tags"], kept["based_on"]) == ("9", "second", "2")
    assert app.post(f"/agents/{slug}", kept).status_code == 303
    assert [version.agent.k for version in store_of(app).versions(slug)[0]] == [9, 7, 5]


def test_a_judge_that_is_the_tested_model_is_warned_about_on_the_page(app: WebApp):
    slug = begin(app, "Self", target_kind="chat", chat_model="gpt-4o", judge_kind="openai", judge_model="gpt-4o")
    assert "judges itself" in app.page(f"/agents/{slug}")


def test_what_was_written_by_hand_survives_an_edit(app: WebApp):
    path = store_of(app).path("by-hand", 1)
    path.parent.mkdir(parents=True)
    path.write_text(
        'target = "demo"\ntimeout = 9.5\n[metrics]\nenabled = ["retrieval", "token_f1", "recall_any@3"]\n'
        'precision = { denominator = "k" }\n[gates]\ncase = ["token_f1 >= 0.6 when category=factual", "mrr off"]\n'
        'run = ["recall_any@3 >= 0.5"]\n[versions]\nllm = "m"\nindex = "i"\n', "utf-8",
    )  # fmt: skip
    assert "has no seal" in app.page("/agents/by-hand")
    assert app.post("/agents/by-hand", edited(app, "by-hand", k="6")).status_code == 303
    before, after = store_of(app).read("by-hand", 1).agent, store_of(app).read("by-hand", 2).agent
    assert {*after.metrics} == {*before.metrics}
    assert before.model_copy(update={"k": 6, "metrics": after.metrics}) == after
    assert after.more == {"timeout": 9.5, "metrics": {"precision": {"denominator": "k"}}, "versions": {"index": "i"}}


def test_a_changed_file_is_said_on_its_page_and_in_the_list(app: WebApp):
    slug = begin(app, "Tampered")
    path = store_of(app).path(slug, 1)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"k = 5", b"k = 50"))
    assert "was changed after it was saved" in app.page(f"/agents/{slug}")
    assert "! file" in app.page("/agents")


def test_unknown_agents_and_versions_are_pages_that_say_so(app: WebApp):
    slug = begin(app, "Known")
    for path in ("/agents/nobody", f"/agents/{slug}/versions/9", f"/agents/{slug}/diff?before=8&after=9",
                 "/agents/..%2f..%2fetc", "/agents/nobody/edit", f"/agents/{slug}/edit?version=7"):  # fmt: skip
        assert app.get(path).status_code == 404, path
    assert app.get(f"/agents/{slug}/versions/x").status_code == 400
    assert app.post("/agents/nobody", {"name": "x"}).status_code == 404


def test_the_file_of_a_version_can_be_kept(app: WebApp):
    slug = begin(app, "Kept")
    file = app.get(f"/agents/{slug}/versions/1/toml")
    assert file.content == store_of(app).content(slug, 1)
    assert file.headers["content-disposition"] == 'attachment; filename="kept-v1.toml"'


def test_the_list_is_filtered_by_an_address(app: WebApp):
    begin(app, "Not asked for")
    begin(app, "Filtered one", tags="unusual")
    page = app.page("/agents?q=unusual")
    assert "1 agent of" in page
    assert "Filtered one" in page
    assert "Not asked for" not in page


@pytest.mark.parametrize("mapping", ["x = nan", f"x = {'[' * 200}{']' * 200}", "x = 1979-05-27", "a = 1\nb = 2"])
def test_all_that_is_wrong_with_a_mapping_stands_beside_it(app: WebApp, mapping: str):
    sent = sent_by(app.page("/agents/new"), "/agents")
    response = app.post("/agents", sent | {"name": "M", "target_kind": "http", "url": "http://x", "mapping": mapping})
    assert response.status_code == 422
    assert errors_beside(response.text).keys() == {"mapping"}


def test_passages_that_a_single_expression_finds_survive_an_edit(app: WebApp):
    mapping = 'request.q = "{question}"\nresponse.answer = "text"\nresponse.retrieved_chunks = "documents"\n'
    slug = begin(app, "Whole list", target_kind="http", url="http://x", mapping=mapping)
    assert app.post(f"/agents/{slug}", edited(app, slug, description="other")).status_code == 303
    written = store_of(app).newest(slug).agent.mapping
    assert written == {
        "request": {"q": "{question}"},
        "response": {"answer": "text", "retrieved_chunks": "documents"},
    }


def test_the_form_says_which_keys_are_set(app: WebApp, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-for-the-test")
    page = app.page("/agents/new")
    assert "<code>OPENAI_API_KEY</code> ✔ set in the environment" in page
    assert "<code>ANTHROPIC_API_KEY</code> not set" in page
    assert "sk-a-key" not in page
    slug = begin(app, "Unset", judge_kind="anthropic", judge_model="claude-sonnet-4-5")
    assert "<code>ANTHROPIC_API_KEY</code> is not set, which the judge needs" in app.page(f"/agents/{slug}")


def test_a_version_names_its_author_whom_the_next_form_suggests(app: WebApp):
    slug = begin(app, "Authored", author="Anna")
    assert store_of(app).newest(slug).author == "Anna"
    assert "Anna" in app.page(f"/agents/{slug}")
    assert edited(app, slug)["author"] == "Anna"


def test_a_new_agent_is_judged_by_a_model_whose_key_is_set_else_by_words_and_that_is_said(
    web_app: WebApp, monkeypatch: pytest.MonkeyPatch
):
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    page = web_app.page("/agents/new")
    assert sent_by(page, "/agents")["judge_kind"] == "lexical"
    assert "compared by their words alone" in text_of(page)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-a-key-for-the-test")
    page = web_app.page("/agents/new")
    sent = sent_by(page, "/agents")
    assert (sent["judge_kind"], str(sent["judge_model"])[:7]) == ("anthropic", "claude-")
    assert "A model judges: ANTHROPIC_API_KEY is set in the environment" in text_of(page)
    (web_app.settings.root / "rageval.toml").write_text('judge = "openai:qwen@http://localhost:8000/v1"\n')
    page = web_app.page("/agents/new")
    sent = sent_by(page, "/agents")
    assert (sent["judge_kind"], sent["judge_model"], sent["judge_url"]) == (
        "server",
        "qwen",
        "http://localhost:8000/v1",
    )
    assert "as the project's configuration says" in text_of(page)
