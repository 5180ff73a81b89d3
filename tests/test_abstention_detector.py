"""The detector of abstentions: what it sees in answers that it was not trained on, and what it costs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from importlib.resources import files
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_rageval.abstention.detector import declines, log_odds, only_declines
from pytest_rageval.abstention.evidence import held_share
from pytest_rageval.abstention.features import features_of, sentences_of

DATA = Path(__file__).parent / "data" / "abstention"

REFUSALS = [
    "I don't know.",
    "I do not have enough information to answer this.",
    "I'm sorry, but I cannot answer that based on the provided context.",
    "I was unable to find this in the knowledge base.",
    "The provided documents do not contain any information about the vacation policy.",
    "Based on the notes, the documents don't specify a date. Please contact the author.",
    "There is no mention of a deadline in the notes.",
    "This is not mentioned in the provided documents.",
    "I am not able to help with that request. Would you like me to look for something else?",
    "N/A",
    "Not enough information.",
    "죄송합니다. 관련 정보가 없습니다.",
    "잘 모르겠습니다.",
    "문서에는 출시일이 언급되어 있지 않습니다.",
    "答えはわかりません。",
    "提供された文書には記載されていません。",
    "資料に価格についての情報はありません。",
    "抱歉，我无法回答这个问题。",
    "根据现有资料，没有找到相关信息。",
    "信息不足，无法确定。",
    "Ich kann diese Frage leider nicht beantworten.",
    "Ich habe dazu keine Informationen gefunden.",
    "Das wird in den Dokumenten nicht erwähnt.",
    "Désolé, je ne peux pas répondre à cette question.",
    "Je n'ai pas trouvé d'informations à ce sujet.",
    "Aucune information n'est disponible dans les documents.",
    "Lo siento, no puedo responder a esa pregunta.",
    "Los documentos no mencionan el precio.",
    "Based on the available context, I can't determine the answer.",
    "I could not find an answer to your question in the corpus.",
    "There isn't enough information in the context to answer the question.",
    "It is not possible to answer this question from the provided documents.",
    "None of the documents mention the warranty.",
    "No documents match your query.",
    "I wasn't able to locate any information on that subject.",
    "The question is too ambiguous to answer. Could you clarify which rig you mean?",
    "I can only answer questions about the lab notes.",
    "The information you are looking for is not available.",
    "We could not find anything relevant.",
    "insufficient_information",
    "I don't see anything about that in the files.",
    "The provided context lacks information about the budget.",
    "해당 내용은 문서에 없습니다.",
    "찾을 수 없습니다.",
    "모르겠어요.",
    "該当する情報が見つかりませんでした。",
    "申し訳ございませんが、回答できません。",
    "情報が不足しているため、答えられません。",
    "我没有关于这个问题的信息。",
    "資料中沒有相關資訊。",
    "上下文中不包含该信息。",
    "Leider kann ich dazu nichts sagen.",
    "Die Frage lässt sich anhand der Dokumente nicht beantworten.",
    "Je n'ai pas assez d'informations pour répondre.",
    "Les documents fournis ne contiennent pas d'informations sur ce point.",
    "Il n'est pas possible de répondre à partir du contexte.",
    "El contexto no proporciona esa información.",
    "No puedo ayudarte con eso.",
    "I cannot answer this question with the information I was given.",
    "My sources say nothing about the opening hours.",
    "Sadly, the context provided offers no details regarding the author's age.",
    "It isn't stated anywhere in the notes how many mice were used.",
    "Not enough context to answer.",
    "I couldn't find anything about quantum computing.",
    "I lack the information needed to answer.",
    "No answer could be found in the provided passages.",
    "Cannot be determined from the context.",
    "I'm not sure what you mean. Could you rephrase?",
    "문서에서 관련 정보를 확인할 수 없습니다.",
    "해당 질문에 대한 정보가 제공되지 않았습니다.",
    "답변할 수 있는 정보가 부족합니다.",
    "その質問に答えるための情報がありません。",
    "すみません、わかりかねます。",
    "ノートには書かれていません。",
    "文档里没有这方面的信息。",
    "無法從上下文得知。",
    "Dazu finde ich in den Notizen nichts.",
    "Leider liegen mir hierzu keine Angaben vor.",
    "Ich habe keine Antwort auf diese Frage.",
    "Les notes ne disent rien à ce sujet.",
    "Le document ne précise pas la date.",
    "No tengo suficiente información para responder.",
    "No se encontró información relevante.",
    "The handbook never says who pays.",
    "None of the retrieved chunks is about penguins.",
    "It doesn't look like the manuals cover that error.",
    "The search returned no relevant passages.",
    "Keine der Passagen nennt den Namen.",
    "Aus dem Text ist nicht ersichtlich, wann das Haus eröffnet wurde.",
    "Die vorliegenden Informationen reichen nicht aus.",
    "Keine Angabe.",
    "누가 이겼는지는 발췌문에서 알 수 없습니다.",
]

ANSWERS = [
    "You cannot sort by date in this view.",
    "The camera can't be triggered faster than 120 Hz.",
    "The export does not contain a header row.",
    "Frames are not stored on the server; they are streamed.",
    "There is no data loss when the buffer overruns.",
    "Unknown devices are listed under Settings.",
    "No. The rig was moved in March.",
    "The exact figure is 512, although the notes do not say who measured it.",
    "이 보기에서는 날짜순으로 정렬할 수 없습니다.",
    "알 수 없는 오류가 발생하면 서버를 다시 시작합니다.",
    "カメラは120Hzより速く動作しません。",
    "在不重启的情况下无法更改设置。",
    "Die Kamera läuft nicht schneller als 120 Hz.",
    "La caméra ne dépasse pas 120 Hz.",
    "La cámara no supera los 120 Hz.",
    "The API returns 404 when the record is not found.",
    "The notes are stored on the NAS and cannot be edited by guests.",
    "Ines could not determine the depth, so she used 200 µm.",
    "The documentation does not need to be signed.",
    "The results do not include trials shorter than 2 s.",
    "We could not confirm the effect in the second cohort.",
    "The article does not describe mice but rats.",
    "It is unclear why the laser drifts; Ines suspects humidity.",
    "데이터가 없는 세션은 제외합니다.",
    "이 자료는 공개되지 않습니다.",
    "データは保存されません。",
    "没有数据丢失。",
    "Ohne Informationen zum Gewicht wird die Sitzung ausgeschlossen.",
    "Les données ne sont pas disponibles avant mars.",
    "El equipo no pudo determinar la causa.",
    'The president said: "I have no idea who leaked it."',
    "Ratings are not given to members below 18.",
    "Die Meldung „Keine Informationen gefunden“ erscheint, wenn der Sensor fehlt.",
    "Das Dokument darf keine Bilder enthalten.",
    "신청서에 정보가 부족하면 반려됩니다.",
    "문서에 이미지가 포함되지 않으면 용량이 줄어듭니다.",
]


def share(found: Sequence[bool | None]) -> float:
    return sum(map(bool, found)) / len(found)


def test_most_short_refusals_in_seven_languages_are_seen():
    assert share([declines(answer).abstained for answer in REFUSALS]) >= 0.8


def test_few_short_answers_are_taken_for_refusals_whatever_they_negate():
    assert share([declines(answer).abstained for answer in ANSWERS]) <= 0.2


def test_a_refusal_is_explained_by_the_sentence_that_says_it():
    refusal = "The notes do not mention its serial number."
    found = declines(f"The rig stands in room 4. {refusal}", "What is the serial number of the rig?")
    assert found.abstained
    assert found.phrase == refusal
    assert declines("The serial number is 4711.", "What is the serial number of the rig?").phrase is None


def test_phrases_of_the_project_are_found_in_any_case_and_spacing():
    answer = "Dear guest,\n**ask the  Front Desk** about this."
    assert declines(answer, phrases=["Ask the front desk"])[:3] == (True, 0.95, "Ask the front desk")
    assert declines("The rig runs at 30 Hz. " + answer, phrases=["Ask the front desk"]).abstained
    assert declines(answer, phrases=["ask the back desk"]) == declines(answer)


@pytest.mark.parametrize("answer", ["I don't know.", "No information was found in the documents.", "Keine Angabe."])
def test_no_verdict_is_certain(answer: str):
    assert declines(answer).abstained
    assert 0.5 < declines(answer).confidence < 1
    assert 0.5 < declines("It is 30 Hz.").confidence < 1


def test_few_sentences_of_answers_are_taken_for_no_claim():
    answered = [row["answer"] for row in read("labelled.jsonl") if row["label"] == "answered"]
    claims = [sentence for answer in answered for sentence in sentences_of(answer)]
    assert len(claims) > 1_000
    assert share([only_declines(sentence) for sentence in claims]) <= 0.005


@settings(max_examples=200, deadline=None)
@given(st.text(), st.text())
@example("\x00\x1b[31m\ud800", "\udfff")
@example("", "")
@example("İİ ﬀ ㎏", "ŉ")
@example("²³ ٣ Ⅷ", "½")
def test_any_text_is_judged(answer: str, question: str):
    found = declines(answer, question)
    assert 0.5 <= found.confidence <= 1
    assert found == declines(answer, question)
    assert (found.phrase is not None) is bool(found.abstained)
    only_declines(answer)


@pytest.mark.parametrize(
    "huge",
    ["the documents ", "not ", "i cannot " * 9, "정보가 없", "no hay. ", "\n. a", "n't", "…", "x" * 99, "。いいえ"],
)
def test_of_a_huge_answer_only_the_beginning_and_the_end_are_read(huge: str):
    long, longer = huge * (10**6 // len(huge)), huge * (2 * 10**6 // len(huge))
    assert 0.5 <= declines(long, long).confidence <= 1
    read = features_of(long, long)
    assert sum(len(block.all_places()) for block in (*read.answer, *chain(*read.sentences))) < 20_000
    assert features_of(long + huge[-1] * 700, long).sentences == features_of(longer + huge[-1] * 700, longer).sentences


@pytest.mark.child_process
def test_equal_answers_get_equal_scores_in_every_process():
    rows = read("labelled.jsonl")[::40]
    program = (
        "import json, sys; from pytest_rageval.abstention.detector import log_odds\n"
        "print([log_odds(row['answer'], row['question']).hex() for row in json.load(sys.stdin)])"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps(rows),
            env={"PYTHONHASHSEED": seed, "PYTHONUTF8": "1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert runs == {str([log_odds(row["answer"], row["question"]).hex() for row in rows])}


def test_the_weights_are_small():
    assert len((files("pytest_rageval.abstention") / "weights.bin").read_bytes()) <= 300_000


def test_it_agrees_with_the_real_english_answers_that_it_was_trained_on():
    """A check of the shipped weights only; what it makes of other answers stands in docs/judges.md."""
    seen = detected(row for row in read("labelled.jsonl") if row["language"] == "en")
    assert (len(seen["abstained"]), len(seen["answered"])) == (247, 397)
    assert share(seen["abstained"]) >= 0.95
    assert share(seen["answered"]) <= 0.01


def read(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def detected(rows) -> dict[str, list[bool | None]]:
    seen: dict[str, list[bool | None]] = {"abstained": [], "answered": [], "partial": []}
    for row in rows:
        seen[row["label"]].append(declines(row["answer"], row["question"]).abstained)
    return seen


@given(st.text("aB1_-'.@ \n"))
def test_ascii_answers_are_cut_into_words_as_any_others(answer: str):
    filler = "the quick brown fox jumps over the lazy dog, sees another sleeping beneath some bushes, and waits"
    passages = [answer, filler]
    assert held_share("", answer, passages) == held_share("", answer, [*passages, "é"])
