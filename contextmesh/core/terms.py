"""Text -> search terms, the same way for what is stored and for what is asked.

FalkorDB's full-text index splits at punctuation, folds ASCII case only and reads operators in a query.
So the graph stores a `search` text of our own terms, and a question is sent as such terms only.
"""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain, islice

import Stemmer

MAX_TERM_LENGTH = 64
MAX_TERMS_STORED = 20_000
MAX_REMEMBERED = 2_000

_WORDS = re.compile(r"\w+(?:[-.:/@+]\w+)*")
_PARTS = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_STEMMER = Stemmer.Stemmer("english", 0)  # without a cache of its own: ours knows more


def terms(text: str) -> dict[str, str]:
    """Return the search terms of a text in order, each with the word it came from.

    An identifier such as `checkout-service`, `OrderService` or `v1.2.3` counts whole (joined by `_`) and in
    its parts. Words are case-folded in every script and stemmed as English; emoji are terms too.

    Example:
        >>> terms("Checkout-API failing 🔥")
        {'checkout_api': 'Checkout-API', 'checkout': 'Checkout', 'api': 'API', 'fail': 'failing', 'u1f525': '🔥'}
    """
    found: dict[str, str] = {}
    for word in _words(text):
        for term, source in _terms_of(word).items():
            found.setdefault(term, source)
        if len(found) >= MAX_TERMS_STORED:
            break
    return found


def sequence(text: str) -> list[str]:
    """Return the search terms of a text as often and in the order in which they stand in it.

    Example:
        >>> sequence("Redis, then redis-cli")
        ['redi', 'then', 'redis_cli', 'redi', 'cli']
    """
    return list(islice(chain.from_iterable(map(_terms_of, _words(text))), MAX_TERMS_STORED))


def search_text(*texts: str) -> str:
    """Return the text to index: the terms of all texts, without repetition, joined by spaces."""
    # A patch seldom changes a text; only short ones are remembered, so that this stays small.
    return _short_text(texts) if sum(map(len, texts)) < MAX_REMEMBERED else _text(texts)


def _text(texts: tuple[str, ...]) -> str:
    words = chain.from_iterable(map(_words, texts))
    found = dict.fromkeys(chain.from_iterable(map(_terms_of, words)))
    return " ".join(islice(found, MAX_TERMS_STORED))


def _words(text: str) -> list[str]:
    """Split into words and emoji, in order."""
    if text.isascii():
        return _WORDS.findall(text)
    text = unicodedata.normalize("NFKC", text)
    words = [(match.start(), match[0]) for match in _WORDS.finditer(text)]
    words += [(at, char) for at, char in enumerate(text) if char > "\x7f" and unicodedata.category(char) == "So"]
    return [word for _, word in sorted(words)]


_short_text = lru_cache(maxsize=10_000)(_text)


@lru_cache(maxsize=100_000)
def _terms_of(word: str) -> Mapping[str, str]:
    if len(word) == 1 and unicodedata.category(word) == "So":
        return {f"u{ord(word):x}": word}
    parts = [part for chunk in _PARTS.findall(word) for part in _CAMEL.split(chunk)]
    single: dict[str, str] = {}
    for part in parts:
        single.setdefault(stem(part), part)
    if len(parts) > 1:
        camel = _PARTS.findall(word) != parts and len(_PARTS.findall(word)) == 1
        whole = stem("".join(parts)) if camel else "_".join(parts).casefold()[:MAX_TERM_LENGTH]
        return {whole: word, **single}
    return single


@lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """Return a word's case-folded English stem, cut at 64 characters."""
    folded = word.casefold()[:MAX_TERM_LENGTH]
    return str(_STEMMER.stemWord(folded)) if folded.isascii() else folded
