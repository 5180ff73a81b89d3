"""Courtesies around answers: they are taken off, and change no verdict."""

from __future__ import annotations

import json
import re
import time
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reliability import Tally

from pytest_rageval.abstention.courtesies import LONGEST_COURTESY, without_courtesies
from pytest_rageval.abstention.detector import declines
from pytest_rageval.abstention.languages import untrained_language
from pytest_rageval.abstention.own_words import own_words

DATA = Path(__file__).parent / "data" / "abstention"
MANNERS = {
    "en": [
        "I'd be happy to help! {}",
        "Great question! {}",
        "Thanks for reaching out to us. {}",
        "Let me check that for you. {}",
        "Sure thing! {} Hope that helps!",
        "Hello there, and welcome back! {}",
        "Of course. {} Is there anything else I can assist you with?",
        "{} Let me know if you have any other questions!",
        "{} Feel free to reach out if you need anything else.",
        "Good morning! {} Have a wonderful day!",
        "I understand how important this is to you. {}",
        "{} I hope this helps!",
        "Apologies for the wait! {}",
        "Absolutely! {} Happy to help further.",
        "{} Don't hesitate to ask if anything is unclear.",
        "I appreciate your patience. {} Take care!",
        "Hi! This is Nora, your virtual assistant. {}",
        "No problem at all. {} Would you like to know more?",
        "That's an interesting question. {}",
        "{} Was this helpful?",
    ],
    "de": [
        "Gerne helfe ich weiter! {}",
        "Vielen Dank für Ihre Anfrage. {} Freundliche Grüße",
        "Moin und danke fürs Warten! {}",
        "Es freut mich, dass Sie fragen! {}",
        "{} Bleiben Sie gesund!",
        "{} Kann ich sonst noch etwas für Sie tun?",
        "Herzlichen Glückwunsch zur Hochzeit! {}",
        "{} Sollte das nicht klappen, melden Sie sich einfach.",
        "Entschuldigen Sie bitte die Wartezeit! {}",
        "Ich habe nachgesehen: {}",
    ],
    "fr": [
        "Bonjour ! {} Bonne journée !",
        "Avec plaisir ! {}",
        "Bonjour et merci de nous écrire. {}",
        "Quelle belle question ! {}",
        "{} Prenez soin de vous.",
        "{} Au plaisir de vous relire.",
        "Félicitations pour votre bébé ! {}",
        "{} Veuillez agréer, Madame, nos salutations distinguées.",
    ],
    "es": [
        "¡Hola! {} ¡Que tenga un buen día!",
        "¡Con gusto! {}",
        "¡Qué buena pregunta! {}",
        "{} ¡Un abrazo!",
        "Disculpe la espera. {}",
        "{} ¡Felices lecturas!",
        "¡Enhorabuena por la boda! {}",
        "{} Si algo no funciona, aquí me tiene.",
    ],
    "pt": [
        "Olá! {} Tenha um ótimo dia!",
        "Com todo o prazer! {}",
        "Adorei a pergunta! {}",
        "{} Boas leituras!",
        "Peço desculpas pela demora. {}",
        "{} Volte quando quiser!",
        "Parabéns aos noivos! {}",
        "{} Precisa de mais alguma coisa?",
    ],
    "ko": [
        "안녕하세요! {} 도움이 되셨기를 바랍니다.",
        "좋은 질문입니다. {}",
        "기다리게 해서 죄송합니다. {}",
        "{} 즐거운 여행 되세요!",
        "{} 푹 쉬세요.",
        "찾아 주셔서 반갑습니다. {}",
        "{} 궁금하신 점이 있으시면 언제든지 문의해 주세요.",
        "결혼을 진심으로 축하드려요! {}",
    ],
    "ja": [
        "お問い合わせありがとうございます。{}",
        "{}お役に立てれば幸いです。",
        "お待たせして申し訳ございません。{}",
        "{}お大事になさってください。",
        "ご結婚おめでとうございます！{}",
        "{}お気軽にお問い合わせください。",
        "これについてご案内します。{}",
        "{}ご来館をお待ちしております。",
    ],
    "zh": [
        "您好！{}",
        "{}希望对您有帮助。",
        "我来为您说明。{}",
        "抱歉让您久等了。{}",
        "恭喜恭喜，百年好合！{}",
        "{}祝您旅途愉快！",
        "{}如有其他问题，请随时联系我们。",
        "这个问题问得真好！{}",
    ],
}
PLAIN = {
    "de": "Die Gebühr beträgt zehn Euro.",
    "fr": "Les frais sont de dix euros.",
    "es": "La tasa es de diez euros.",
    "pt": "A taxa é de dez euros.",
    "ko": "수수료는 십 유로입니다.",
    "ja": "手数料は十ユーロです。",
    "zh": "手续费是十欧元。",
}
ANNOUNCEMENTS = [
    "Let me look that up.",
    "Let me look that up for you.",
    "One moment please.",
    "Sure! Let me check our returns policy.",
    "Searching the handbook…",
    "I'll check the documentation now.",
    "Just a second, I'm looking into it.",
    "Great question! Let me find that for you.",
    "Einen Moment, ich sehe in den Unterlagen nach.",
    "Ich schaue kurz nach.",
    "Un instant, je vérifie.",
    "Un momento, por favor, voy a consultarlo.",
    "Um momento, vou verificar.",
    "잠시만 기다려 주세요.",
    "확인해 보겠습니다.",
    "少々お待ちください。",
    "お調べいたします。",
    "请稍等，我查一下。",
]
CONTENT = [
    "Let me be clear: the contract ends in May.",
    "Please wait 30 minutes before you eat.",
    "Check the box and press OK.",
    "Hold on to the handrail.",
    "Have the form stamped at desk 4.",
    "Feel free to park behind the house.",
    "Take it back within 14 days.",
    "Checking accounts have no monthly fee.",
    "Checking the oil takes five minutes.",
    "We'll check your application within five days.",
    "Wir öffnen um neun.",
    "Wir prüfen Ihren Antrag innerhalb einer Woche.",
    "Ouverture à 9 h.",
    "Nous vérifions votre dossier sous trois jours.",
    "Lo puede consultar en la web.",
    "システムが自動で確認します。",
    "可以帮您查看余额。",
    "Hold the button until the light is green.",
    "Search the archive by name or year.",
    "Looking after the garden is the tenant's duty.",
    "Moment magnitude 6.1.",
    "The moment of inertia is 3 kg m².",
    "Thank-you letters are sent in March.",
    "Let me check that for you. The Pro plan costs 59 euros a month.",
    "Warten Sie bitte, bis die Lampe grün leuchtet.",
    "잠시 후 자동으로 꺼집니다.",
    "検索結果は3件です。",
    "Wenn Sie die Karte verlieren, rufen Sie die Sperrhotline an.",
    "Für Sie ist der Eintritt gratis.",
    "Fragen Sie an der Pforte nach dem Schlüssel.",
    "Ihr Team spielt am Samstag.",
    "Si vous perdez la carte, appelez la banque.",
    "Pour vous inscrire, remplissez le formulaire.",
    "Adressez-vous à l'accueil.",
    "Le service clientèle ferme le samedi.",
    "Si pierde la tarjeta, llame al banco.",
    "Pregunte en recepción.",
    "El equipo de rescate sale del puerto.",
    "Buena parte del museo es gratuita.",
    "Basta apresentar o documento na entrada.",
    "Se perder o cartão, ligue para o banco.",
    "Pode retirar na recepção.",
    "Qualquer pessoa pode entrar.",
    "A equipe de resgate fica na praia.",
    "예약은 전화로 해 주세요.",
    "예약은 전화 또는 앱으로 해 주세요.",
    "다른 카드로 결제해 주세요.",
    "카드를 분실하시면 고객센터로 연락해 주세요.",
    "정문에서 만나요.",
    "受付でお尋ねください。",
    "お電話またはメールでご予約ください。",
    "もし紛失された場合は窓口へお越しください。",
    "駅前の図書館",
    "请在前台领取。",
    "如果丢失，请联系银行。",
    "如需退款，请联系客服。",
    "随时可以取消。",
    "庆祝活动在周六举行。",
]


def rows() -> list[dict[str, str]]:
    return [json.loads(line) for line in (DATA / "labelled.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.reliability("false reds", "polite answers taken for refusals")
@pytest.mark.parametrize("answer", ANNOUNCEMENTS)
def test_what_only_announces_is_no_answer_and_no_abstention(answer: str):
    assert own_words(answer).is_announcement
    assert declines(answer, "What does the Pro plan cost?").is_announcement
    assert declines(answer, "What does the Pro plan cost?").abstained is False


@pytest.mark.reliability("false reds", "polite answers taken for refusals")
@pytest.mark.parametrize("answer", CONTENT)
def test_content_that_begins_like_a_courtesy_stays(answer: str):
    assert not own_words(answer).is_announcement
    kept = without_courtesies(answer).text
    assert kept == answer or answer.endswith(kept)
    assert len(kept) > 5


@pytest.mark.reliability("false reds", "polite answers taken for refusals")
def test_courtesies_are_taken_off_both_ends():
    answer = "Hello! Thanks for asking. The plan costs 59 euros a month. Let me know if you need anything else!"
    assert without_courtesies(answer).text == "The plan costs 59 euros a month."


@pytest.mark.reliability("false reds", "polite answers taken for refusals")
def test_a_courtesy_that_denies_something_stays():
    refusal = "I'd be happy to help, but the notes do not say that."
    assert without_courtesies(refusal).text == refusal


@pytest.mark.reliability("false reds", "polite answers taken for refusals")
@pytest.mark.parametrize("language", PLAIN)
def test_manners_are_taken_off(language: str):
    plain = PLAIN[language]
    left = {manner: without_courtesies(manner.format(plain)).text for manner in MANNERS[language]}
    assert {manner: text for manner, text in left.items() if text != plain} == {}


@pytest.mark.reliability("false reds", "polite answers taken for refusals")
@pytest.mark.parametrize("language", [language for language in MANNERS if language != "pt"])
def test_manners_change_no_verdict(language: str, tally: Tally):
    """Of every tenth labelled answer (all where there are few), in each manner of its language."""
    of_language = [row for row in rows() if row["language"] == language and row["label"] != "partial"]
    changed = []
    tried = 0
    for row in of_language[:: max(1, len(of_language) // 60)]:
        plain = declines(row["answer"], row["question"]).abstained
        for manner in MANNERS[language]:
            tried += 1
            tally.tried()
            polite = manner.format(_sentence(row["answer"]))
            if declines(polite, row["question"]).abstained is not plain:
                changed.append(polite[:200])
    assert tried >= 6
    assert len(changed) <= 0.02 * tried, "\n".join(changed)


def _sentence(answer: str) -> str:
    """Give a bare answer a line of its own: no bot goes on in the same line without a mark."""
    return answer if answer.rstrip().endswith((".", "!", "?", "。")) else f"{answer.rstrip()}\n"


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_keeps_something(text: str):
    kept = without_courtesies(text).text
    assert kept == text or (kept and kept in text)


@pytest.mark.parametrize("separator", [" ", "", ". ", "\n", ","])
def test_words_of_the_patterns_cost_little(separator: str):
    patterns = (files("pytest_rageval.abstention") / "courtesies.txt").read_text(encoding="utf-8")
    words = re.findall(r"[^\W\d_]+", patterns)
    for start in range(0, len(words), 500):
        hostile = (separator.join(words[start : start + 40]) + separator) * 200
        begun = time.perf_counter()
        own_words(hostile[:20_000])
        assert time.perf_counter() - begun < 2, words[start]


@pytest.mark.parametrize("separator", [" ", ""])
def test_a_longest_sentence_costs_little(separator: str):
    patterns = (files("pytest_rageval.abstention") / "courtesies.txt").read_text(encoding="utf-8")
    words = re.findall(r"[^\W\d_]+", patterns)
    for start in range(0, len(words), 200):
        sentence = separator.join(words[start : start + 12] * 10)[: LONGEST_COURTESY - 2]
        begun = time.perf_counter()
        own_words(f"{sentence}#!\n" * 80)
        assert time.perf_counter() - begun < 2, sentence


def test_a_refusal_that_is_only_reported_is_blanked():
    assert own_words('She said: "I cannot tell you anything about that."').text == "She said: …"
    assert own_words('"No comment."').text == '"No comment."'


@pytest.mark.parametrize(
    ("answer", "language"),
    [
        ("La risposta non è nei documenti che ho a disposizione.", "Italian"),
        ("Het antwoord op deze vraag staat niet in de documenten.", "Dutch"),
        ("Informacja nie znajduje się w tym dokumencie, ale jest na stronie.", "Polish"),
        ("Документы не содержат ответа на этот вопрос.", "a language in Cyrillic script"),
        ("المستندات لا تحتوي على إجابة", "a language in Arabic script"),
        ("The answer is not in the documents.", None),
        ("Die Antwort steht nicht in den Unterlagen.", None),
        ("문서에 없습니다.", None),
        ("42", None),
        ("", None),
    ],
)
def test_languages_without_training_are_named(answer: str, language: str | None):
    assert untrained_language(answer) == language


def test_labelled_answers_are_in_languages_of_the_training():
    named = [row for row in rows() if row["language"] != "ru" and untrained_language(row["answer"])]
    assert len(named) <= 3, [row["answer"][:80] for row in named]
