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
from pytest_rageval.abstention.features import features_of, sentences_of

DATA = Path(__file__).parent / "data" / "abstention"

REFUSALS = [
    "I don't know.",
    "I don’t know the answer to that question.",
    "I do not have enough information to answer this.",
    "I don't have access to that data.",
    "I'm sorry, but I cannot answer that based on the provided context.",
    "Sorry, I couldn't find any relevant notes.",
    "I was unable to find this in the knowledge base.",
    "Unfortunately, I have no information about the price.",
    "The provided documents do not contain any information about the vacation policy.",
    "The context does not mention who built the rig.",
    "Based on the notes, the documents don't specify a date. Please contact the author.",
    "There is no information about this in the sources.",
    "There is no mention of a deadline in the notes.",
    "No relevant information was found.",
    "This is not mentioned in the provided documents.",
    "The question cannot be answered from the given context.",
    "I am not able to help with that request. Would you like me to look for something else?",
    "I must decline to answer.",
    "N/A",
    "Unknown.",
    "Not enough information.",
    "제공된 문서에서 해당 정보를 찾을 수 없습니다.",
    "죄송합니다. 관련 정보가 없습니다.",
    "죄송하지만 그 질문에는 답변할 수 없습니다.",
    "잘 모르겠습니다.",
    "가격은 알 수 없습니다.",
    "문서에는 출시일이 언급되어 있지 않습니다.",
    "관련된 자료를 찾지 못했습니다. 담당자에게 문의해 주세요.",
    "答えはわかりません。",
    "申し訳ありませんが、その情報は見つかりませんでした。",
    "提供された文書には記載されていません。",
    "この質問にはお答えできません。",
    "資料に価格についての情報はありません。",
    "我不知道。",
    "抱歉，我无法回答这个问题。",
    "提供的文档中没有提到价格。",
    "根据现有资料，没有找到相关信息。",
    "文件中並未提及此事。",
    "信息不足，无法确定。",
    "Das weiß ich leider nicht.",
    "Ich kann diese Frage leider nicht beantworten.",
    "Die Dokumente enthalten keine Informationen zu diesem Thema.",
    "Ich habe dazu keine Informationen gefunden.",
    "In den bereitgestellten Unterlagen gibt es keine Angaben dazu.",
    "Das wird in den Dokumenten nicht erwähnt.",
    "Je ne sais pas.",
    "Désolé, je ne peux pas répondre à cette question.",
    "Le contexte ne mentionne pas cette information.",
    "Je n'ai pas trouvé d'informations à ce sujet.",
    "Les notes n'indiquent aucune date.",
    "Aucune information n'est disponible dans les documents.",
    "No lo sé.",
    "Lo siento, no puedo responder a esa pregunta.",
    "No tengo información suficiente.",
    "Los documentos no mencionan el precio.",
    "No encontré información sobre ese tema.",
    "Based on the available context, I can't determine the answer.",
    "The notes don't cover this topic.",
    "I could not find an answer to your question in the corpus.",
    "I'm afraid I don't have that information.",
    "There isn't enough information in the context to answer the question.",
    "The given passages do not state when the meeting took place.",
    "It is not possible to answer this question from the provided documents.",
    "It's unclear from the context who wrote the script.",
    "None of the documents mention the warranty.",
    "None of the retrieved passages address this.",
    "No documents match your query.",
    "I have no record of that.",
    "I wasn't able to locate any information on that subject.",
    "The answer is not in the provided text.",
    "The question is too ambiguous to answer. Could you clarify which rig you mean?",
    "Sorry, I can't help with that.",
    "I can only answer questions about the lab notes.",
    "That information isn't available.",
    "The information you are looking for is not available.",
    "I do not know who won the match.",
    "We could not find anything relevant.",
    "Nothing in the notes answers this question.",
    "insufficient_information",
    "no_relevant_context",
    "I don't see anything about that in the files.",
    "As an AI, I don't have personal opinions.",
    "The provided context lacks information about the budget.",
    "주어진 문맥만으로는 답변하기 어렵습니다.",
    "해당 내용은 문서에 없습니다.",
    "정보가 충분하지 않아 답변드릴 수 없습니다.",
    "찾을 수 없습니다.",
    "제공된 자료에는 그 질문에 대한 답이 포함되어 있지 않습니다.",
    "모르겠어요.",
    "확인된 정보가 없어 정확한 답을 드리기 어렵습니다.",
    "該当する情報が見つかりませんでした。",
    "文脈からは判断できません。",
    "申し訳ございませんが、回答できません。",
    "その件については資料に含まれていません。",
    "情報が不足しているため、答えられません。",
    "根据提供的上下文，无法确定答案。",
    "我没有关于这个问题的信息。",
    "对不起，我不知道答案。",
    "資料中沒有相關資訊。",
    "文中未提供价格。",
    "上下文中不包含该信息。",
    "Dazu liegen mir keine Informationen vor.",
    "Leider kann ich dazu nichts sagen.",
    "Der Kontext gibt darüber keine Auskunft.",
    "Die Frage lässt sich anhand der Dokumente nicht beantworten.",
    "Ich weiß es nicht.",
    "Je n'ai pas assez d'informations pour répondre.",
    "Je ne dispose pas d'informations à ce sujet.",
    "Les documents fournis ne contiennent pas d'informations sur ce point.",
    "Cette information n'est pas disponible.",
    "Il n'est pas possible de répondre à partir du contexte.",
    "No hay información suficiente en el contexto.",
    "El contexto no proporciona esa información.",
    "Desconozco la respuesta.",
    "No puedo ayudarte con eso.",
    "Esa información no está disponible.",
    "I cannot answer this question with the information I was given.",
    "I have not been able to find an answer in the lab notes.",
    "My sources say nothing about the opening hours.",
    "The notes are silent on this point.",
    "Sadly, the context provided offers no details regarding the author's age.",
    "I don't have any record of a meeting on that day.",
    "It isn't stated anywhere in the notes how many mice were used.",
    "The available excerpts do not say.",
    "Not enough context to answer.",
    "There are no notes about skiing in this vault.",
    "I couldn't find anything about quantum computing.",
    "This topic does not appear in the corpus.",
    "I lack the information needed to answer.",
    "That question falls outside the scope of the documents.",
    "No answer could be found in the provided passages.",
    "I would need more information to answer that.",
    "Cannot be determined from the context.",
    "No information.",
    "I'm not sure what you mean. Could you rephrase?",
    "The text makes no reference to a second experiment.",
    "문서에서 관련 정보를 확인할 수 없습니다.",
    "제가 가진 정보로는 답을 알 수 없어요.",
    "해당 질문에 대한 정보가 제공되지 않았습니다.",
    "노트에 그런 내용은 없습니다.",
    "답변할 수 있는 정보가 부족합니다.",
    "관련 내용이 나와 있지 않습니다.",
    "その質問に答えるための情報がありません。",
    "文書内に該当する記述はありませんでした。",
    "すみません、わかりかねます。",
    "提供された情報だけでは判断できません。",
    "ノートには書かれていません。",
    "很抱歉，我没有找到相关的内容。",
    "文档里没有这方面的信息。",
    "这个问题超出了资料范围，无法回答。",
    "無法從上下文得知。",
    "我不确定。",
    "Dazu finde ich in den Notizen nichts.",
    "Darüber steht nichts in den Dokumenten.",
    "Leider liegen mir hierzu keine Angaben vor.",
    "Aus dem Kontext geht das nicht hervor.",
    "Ich habe keine Antwort auf diese Frage.",
    "Désolé, je n'ai trouvé aucune information pertinente.",
    "Les notes ne disent rien à ce sujet.",
    "Je ne suis pas en mesure de répondre.",
    "Le document ne précise pas la date.",
    "Je ne trouve pas la réponse dans le contexte.",
    "No tengo suficiente información para responder.",
    "El texto no menciona nada al respecto.",
    "No se encontró información relevante.",
    "No puedo determinarlo a partir del contexto.",
    "The handbook never says who pays.",
    "The supplied snippets aren't enough to work out the cost.",
    "None of the retrieved chunks is about penguins.",
    "Based on the excerpts, it's unclear what the deadline is.",
    "It doesn't look like the manuals cover that error.",
    "It is not stated who won.",
    "The search returned no relevant passages.",
    "The documents only cover 2021, so I cannot tell you the revenue of 2023.",
    "Keine der Passagen nennt den Namen.",
    "Hierzu finden sich im Handbuch keine Hinweise.",
    "Aus dem Text ist nicht ersichtlich, wann das Haus eröffnet wurde.",
    "Mir fehlen die Informationen, um das zu beantworten.",
    "Die vorliegenden Informationen reichen nicht aus.",
    "Wie hoch die Miete ist, steht nicht im Text.",
    "Keine Angabe.",
    "보고서는 자금이 어떻게 쓰였는지 밝히지 않고 있습니다.",
    "누가 이겼는지는 발췌문에서 알 수 없습니다.",
    "이 문서는 해당 질문과 관련이 없습니다.",
]

ANSWERS = [
    "You cannot sort by date in this view.",
    "Python cannot open the file because the handle is closed.",
    "The camera can't be triggered faster than 120 Hz.",
    "I cannot recommend the new rig enough: it halved our set-up time.",
    "The export does not contain a header row.",
    "The protocol does not mention-by-name patients; it uses codes of four letters.",
    "Frames are not stored on the server; they are streamed.",
    "There is no limit on the number of sessions.",
    "There is no data loss when the buffer overruns.",
    "If the file cannot be found, the loader raises FileNotFoundError.",
    "Unknown devices are listed under Settings.",
    "The baseline is provided in the documents folder as baseline.csv.",
    "No. The rig was moved in March.",
    "It is 30 Hz. Please check the log if it differs.",
    "The exact figure is 512, although the notes do not say who measured it.",
    "The documents do not mention a price, but the release was in 2019 and cost 40 euros in the first shop.",
    "이 보기에서는 날짜순으로 정렬할 수 없습니다.",
    "카메라는 120Hz보다 빠르게 동작하지 못합니다.",
    "알 수 없는 오류가 발생하면 서버를 다시 시작합니다.",
    "このビューでは日付順に並べ替えることはできません。",
    "カメラは120Hzより速く動作しません。",
    "此视图不能按日期排序。",
    "在不重启的情况下无法更改设置。",
    "Nach Datum kann man hier nicht sortieren.",
    "Die Kamera läuft nicht schneller als 120 Hz.",
    "On ne peut pas trier par date dans cette vue.",
    "La caméra ne dépasse pas 120 Hz.",
    "No se puede ordenar por fecha en esta vista.",
    "La cámara no supera los 120 Hz.",
    ":",
    "The API returns 404 when the record is not found.",
    "No information leaves the device; all data are processed locally.",
    "The notes are stored on the NAS and cannot be edited by guests.",
    "The team could not find the cause of the drift until Ines replaced the laser.",
    "Ines could not determine the depth, so she used 200 µm.",
    "I found the answer in the notes: the rig runs at 30 Hz.",
    "The documentation does not need to be signed.",
    "Sessions without information about the mouse weight are excluded.",
    "The results do not include trials shorter than 2 s.",
    "The reference does not have to be unique.",
    "We could not confirm the effect in the second cohort.",
    "The data were not found in the backup, so they were recorded again in May.",
    "The article does not describe mice but rats.",
    "You don't know the password? Ask the admin.",
    "It is unclear why the laser drifts; Ines suspects humidity.",
    "수요일에는 회의가 없습니다.",
    "데이터가 없는 세션은 제외합니다.",
    "파일을 찾을 수 없으면 오류가 납니다.",
    "이 자료는 공개되지 않습니다.",
    "資料がありませんと表示されたら再起動してください。",
    "データは保存されません。",
    "该文件没有标题行。",
    "没有数据丢失。",
    "数据不足两周的会话被排除。",
    "Ohne Informationen zum Gewicht wird die Sitzung ausgeschlossen.",
    "Das Team konnte die Ursache nicht finden, bis Ines den Laser tauschte.",
    "Les données ne sont pas disponibles avant mars.",
    "No hay datos perdidos.",
    "El equipo no pudo determinar la causa.",
    'The error "no information available" appears when the sensor is unplugged.',
    'The president said: "I have no idea who leaked it."',
    "The manual does not recommend mixing both oils.",
    "Ratings are not given to members below 18.",
    "The available context is 8,192 tokens, which is not enough for a book.",
    "Die Meldung „Keine Informationen gefunden“ erscheint, wenn der Sensor fehlt.",
    "Die Unterlagen müssen nicht beglaubigt sein.",
    "Das Dokument darf keine Bilder enthalten.",
    "Der Bericht nennt nicht drei, sondern vier Ursachen.",
    "신청서에 정보가 부족하면 반려됩니다.",
    "404 페이지는 문서를 찾을 수 없다는 뜻입니다.",
    "문서에 이미지가 포함되지 않으면 용량이 줄어듭니다.",
]


def share(found: Sequence[bool]) -> float:
    return sum(found) / len(found)


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
    assert declines(answer, phrases=["Ask the front desk"]) == (True, 0.95, "Ask the front desk")
    assert declines("The rig runs at 30 Hz. " + answer, phrases=["Ask the front desk"]).abstained
    assert declines(answer, phrases=["ask the back desk"]) == declines(answer)


def test_a_sentence_is_read_by_itself():
    assert only_declines("The documents do not contain any information about the budget.")
    assert not only_declines("The microscope runs at 30 Hz.")


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
    assert (found.phrase is not None) is found.abstained
    only_declines(answer)


@pytest.mark.parametrize(
    "huge",
    ["the documents ", "not ", "i cannot " * 9, "정보가 없", "no hay. ", "\n. a", "n't", "…", "x" * 99, "。いいえ"],
)
def test_of_a_huge_answer_only_the_beginning_and_the_end_are_read(huge: str):
    long, longer = huge * (10**6 // len(huge)), huge * (2 * 10**6 // len(huge))
    assert 0.5 <= declines(long, long).confidence <= 1
    read = features_of(long, long)
    assert sum(len(block.places) for block in (*read.answer, *chain(*read.sentences))) < 20_000
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


def detected(rows) -> dict[str, list[bool]]:
    seen: dict[str, list[bool]] = {"abstained": [], "answered": [], "partial": []}
    for row in rows:
        seen[row["label"]].append(declines(row["answer"], row["question"]).abstained)
    return seen
