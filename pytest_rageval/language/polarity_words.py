"""Words of seven languages that affirm, deny, oppose or offer a choice, and words of grammar, as data.

Latin words stand as `pytest_rageval.language.words.normalise` writes them: in lower case and without apostrophes.
"""

from __future__ import annotations


def _words(written: str) -> frozenset[str]:
    return frozenset(written.split())


YES = _words(
    """
    yes yeah yep correct right true absolutely certainly definitely indeed sure ja jawohl genau richtig
    stimmt oui exact vrai si sí claro correcto cierto verdadero 네 예 맞습니다 그렇습니다 はい ええ
    そうです 是 是的 对 對 可以 有 能 会
    """
)
NO = _words(
    """
    no nope false incorrect wrong nein falsch non faux falso incorrecto 아니요 아니오 아닙니다 いいえ いえ
    不 不是 不能 不可以 没有 沒有 不会 否 不行
    """
)
YES_OR_NO_GOLDS = _words(
    """
    yes no true false ja nein oui non si sí 네 예 아니요 아니오 はい いいえ 是 是的 否 不是 不 vrai faux
    wahr falsch verdadero falso richtig correct incorrect 有 没有 可以 不可以 能 不能
    """
)

DETERMINERS = _words("no 有 没有 能 会")
"""Answer nothing where their clause goes on: in "No fee is charged" it belongs to the fee."""

NEGATORS = _words(
    """
    not no never neither nor cannot cant wont dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt
    couldnt shouldnt wouldnt without unlike none nobody nothing nowhere instead rather nicht kein keine
    keinen keinem keiner keines nie niemals ohne weder statt anstatt anstelle ne pas jamais sans aucun
    aucune ni nunca sin ningún ninguna ninguno tampoco
    """
)
"""Deny what follows, to the end of their clause."""
INSTEAD = _words("instead statt anstatt anstelle")
DENIED_BEFORE = _words("pas nicht")
"""May stand behind the verb that they deny: "il n'est pas", "das gilt nicht"."""
NOT_DENYING_BEFORE = _words(
    """
    only just merely solely until till unless later more less fewer nur bloß erst seulement solo solamente
    mehr weniger doubt idea sooner exactly necessarily
    """
)
"""Behind a negator these deny nothing: "not only", "no later than", "rather than" is read by its own."""
CONTRASTS = _words("but sondern sino mais aber jedoch however pero although though ")
"""End what a negator denies: not 24 but 12."""

OFFERS = (
    "includ",
    "cover",
    "offer",
    "provid",
    "allow",
    "permit",
    "availab",
    "support",
    "accept",
    "enthalten",
    "inbegriffen",
    "erlaubt",
    "gestattet",
    "verfügbar",
    "inclus",
    "compris",
    "autoris",
    "incluid",
    "permitid",
    "disponible",
    "admit",
)
"""Beginnings of words that deny their subject if they are denied: "breakfast is not included"."""

KOREAN_NEGATIONS = ("아니", "아닌", "아닙", "않", "없", "못하", "못합", "불가", "대신")
"""Deny the words before them."""
KOREAN_CONNECTIVES = ("지만", "으며", "하며", "지며", "이며", "내며", "이고", "하고", "되고", "지고", "는데", "인데")
"""End a clause within a sentence: what follows denies nothing before."""
JAPANESE_CONTRASTS = ("ではなく", "ではあり", "じゃな", "ではな", "でなく", "ではありません")
JAPANESE_NEGATIONS = (
    "の代わりに",
    "のかわりに",
    "ではなく",
    "ではありません",
    "じゃなく",
    "じゃない",
    "ではない",
    "でなく",
    "しません",
    "できません",
    "ありません",
    "いません",
    "れません",
    "しない",
    "できない",
    "ない",
    "不可",
)
CHINESE_NEGATIONS = (
    "而非",
    "不是",
    "并非",
    "并不",
    "没有",
    "沒有",
    "不能",
    "不可",
    "无法",
    "不会",
    "不含",
    "不包",
    "不提供",
    "不支持",
    "不",
    "没",
    "沒",
    "无",
    "無",
)
CHINESE_CONTRASTS = ("而是", "但是", "但", "却")

CHOICES = _words("or oder ou o u 또는 혹은 이나 或 或者 または あるいは か 还是")
"""Between alternatives."""
HEDGES = _words(
    """
    either whether maybe perhaps possibly might could unsure entweder vielleicht möglicherweise könnte peutêtre soit
    pourrait quizás quizá podría 아마 어쩌면
    """
)
"""In a clause with one of these, what stands beside "or" is open."""
DEPENDING = _words(
    """
    depending depends depend abhängig selon dépend dépendant suivant según depende dependiendo 따라 따라서 다릅니다
    달라집니다 could may might könnte könnten pourrait podría puede peut
    """
)
"""In a sentence with one of these, all members of a list with "or" are open."""
DEPENDING_PARTS = ("取决于", "視", "视", "根据", "によって", "により", "次第")
RELATIVE = _words(
    """
    more less extra additional additionally surcharge supplement discount rebate deposit cheaper dearer mehr weniger
    zusätzlich zuzüglich aufpreis zuschlag rabatt kaution anzahlung günstiger teurer moins supplément supplémentaire
    remise caution acompte menos más adicional adicionales suplemento recargo descuento fianza 추가 추가로 할인 보증금
    """
)
"""Make a figure a difference or an extra: 4,200 yen more."""
LIMITS = _words("under below over above before after unter über vor nach avant après sous antes después bajo")
"""Before a figure that limits what is denied."""
RANGES = _words("between zwischen entre")
"""Before two figures that are the ends of a range."""

GRAMMAR = _words(
    """
    der die das den dem des ein eine einen einem einer eines und oder ist sind war waren wird werden von
    vom zu zum zur im in am an auf aus bei mit nach für über um als auch es er sie wir ihr ich man sich hat
    haben kann können dass bis ab pro beträgt le la les un une des du de d l et ou est sont était au aux en
    dans par pour sur avec que qui se sa son ses ce cette il elle ils elles on y à a été être el los las
    una unos unas del al y o es son era fue en por para con que se su sus lo más como ha de la dans about
    am was were been being has had us per upon via within among during since 입니다 있습니다 합니다 됩니다
    것 수 이며 그리고 또는 약
    """
)
"""Words of grammar of other languages than English, beside `pytest_rageval.language.words.STOP_WORDS`."""

GENERAL_NOUNS = _words(
    """
    mount mt river lake city town state county country island sea ocean street saint st sir lord lady king
    queen prince princess dr mr mrs ms president minister general captain professor saint new old great
    north south east west northern southern eastern western central upper lower first second third last
    season series part act law system company group team club school university college church house home
    center centre year years day time people member members man woman men women world war area region place
    point line number name type kind form film movie book song album show game test national international
    united public
    """
)
"""Nouns and adjectives that tell little alone: half a word each."""
