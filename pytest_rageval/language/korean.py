"""Korean words without the particles that hang on them."""

from __future__ import annotations

from typing import Literal


def without_particles(word: str, least: int = 2) -> str:
    """Cut the particles off a Korean word, the last one first: 서울에서는 → 서울에서 → 서울, but 가을 stays.

    A particle is cut if it fits the syllable before it (은 follows a closed syllable, 는 an open one) and leaves at
    least `least` syllables, or one if it cannot be mistaken for the end of a word.
    """
    for _ in range(_MOST_PARTICLES):
        length = _particle_length(word, least)
        word = word[:-length] if length else word
    return word


def _particle_length(word: str, least: int) -> int:
    for length in range(min(_LONGEST_PARTICLE, len(word) - 1), 0, -1):
        particle = word[-length:]
        before = word[-length - 1]
        follows = _PARTICLES.get(particle)
        if follows is None:
            continue
        if not is_hangul(before):
            return length if particle in LONE_PARTICLES else 0
        # Syllables are laid out as 28 finals for each initial and vowel; the first of the 28 is the open syllable.
        is_closed = (ord(before) - 0xAC00) % 28 != 0
        fits = follows == "any" or (follows == "closed") is is_closed
        if fits and len(word) - length >= (1 if particle in _SURE_PARTICLES else least):
            return length
    return 0


def has_hangul(word: str) -> bool:
    """Return True if the word contains a syllable of Hangul."""
    return any(map(is_hangul, word))


def is_hangul(character: str) -> bool:
    return "가" <= character <= "힣"


def _words(written: str) -> frozenset[str]:
    return frozenset(written.split())


_PARTICLES: dict[str, Literal["closed", "open", "any"]] = {
    **dict.fromkeys(_words("은 을 이 과 으로 이나 이라고 이라는 이며 이다 이에요 이었다 이었습니다"), "closed"),
    **dict.fromkeys(_words("는 를 가 와 예요 였다 였습니다"), "open"),
    **dict.fromkeys(_words("의 에 에서 에게 께서 로 도 만 들 부터 까지 보다 처럼 마다 조차 마저 밖에"), "any"),
    **dict.fromkeys(_words("입니다 입니까"), "any"),
}
"""What may hang on a Korean noun, by the kind of syllable that it follows; 라는 and 나 end too many nouns."""
_LONGEST_PARTICLE = max(map(len, _PARTICLES))
_MOST_PARTICLES = 4
_SURE_PARTICLES = _words(
    "은 는 을 를 에서 에게 께서 부터 까지 으로 입니다 입니까 이에요 예요 이었다 이었습니다 였습니다"
)
"""Particles that are stripped from a single syllable too: few nouns of two syllables end so."""
LONE_PARTICLES = frozenset(_PARTICLES) - _words("도 만 들")
"""Dropped where they stand alone, on a number or on a foreign word; 5도 are five degrees, 5만 is 50,000."""
