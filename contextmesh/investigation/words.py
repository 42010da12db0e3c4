"""Texts of unknown origin, made fit to be shown: one line, no control characters, cut at a width."""

import re
import unicodedata

ELLIPSIS = "…"
TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
TURNED = re.compile("[\\u202a-\\u202e\\u2066-\\u2069]")  # those of them that reach beyond their own word
JOINING = frozenset("\u200c\u200d\ufe0e\ufe0f")
SKIN_TONES = frozenset(map(chr, range(0x1F3FB, 0x1F400)))
NO_CHARACTERS = (0xFFFE, 0xFFFF)  # in every plane
WIDE = frozenset("mwMW@%&QOGDCHNUA")
NARROW = frozenset("iljtfrI.,:;'|!()[]{} -")


def one_line(text: str, most: int) -> str:
    r"""Return a text in one line of at most so many characters, without what would steer whoever shows it.

    Control characters become blanks; those that turn the direction of writing for all that follows are left out,
    right-to-left letters stay; half characters and other code points that XML cannot carry become U+FFFD.

    Example:
        >>> one_line("Checkout\n  <b>errors</b>", 80)
        'Checkout <b>errors</b>'
        >>> one_line("a very long text", 8)
        'a very…'
    """
    if len(text) <= most and text.isprintable():  # as nearly all are
        return " ".join(text.split())
    line = " ".join("".join(_fit(char) for char in text[: 4 * most] if char not in TURNING).split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{_kept(line, most - 1)}{ELLIPSIS}"


def _fit(char: str) -> str:
    kind = unicodedata.category(char)
    if kind in ("Cc", "Zl", "Zp"):
        return " "
    return "\ufffd" if kind == "Cs" or ord(char) % 0x10000 in NO_CHARACTERS else char


def _kept(text: str, most: int) -> str:
    """Return the beginning of a text, cut between two characters as a reader counts them."""
    end = min(most, len(text))
    while 0 < end < len(text) and (_is_joined(text[end]) or text[end - 1] == "\u200d"):
        end -= 1
    return text[:end].rstrip()


def _is_joined(char: str) -> bool:
    return char in JOINING or char in SKIN_TONES or unicodedata.combining(char) > 0


def width_of(text: str, size: float) -> float:
    """Return about how wide a text is in a sans-serif font of this size, rather too wide than too narrow."""
    return size * sum(_em(char) for char in text)


def _em(char: str) -> float:
    if char in NARROW:
        return 0.36
    if char in WIDE:
        return 0.8
    if char.isascii():
        return 0.6
    if char in JOINING or unicodedata.combining(char):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.3 if unicodedata.category(char) == "So" else 1.05  # emoji are wider than ideographs
    return 0.68


def cut(text: str, width: float, size: float) -> str:
    """Return as much of a line as fits in a width, with an ellipsis where something is missing.

    Example:
        >>> cut("Release 2.4 changed the session TTL", 110, 12)
        'Release 2.4 cha…'
    """
    if width_of(text, size) <= width:
        return text
    room, end = width - width_of(ELLIPSIS, size), 0
    while end < len(text) and (room := room - width_of(text[end], size)) >= 0:
        end += 1
    return f"{_kept(text, end)}{ELLIPSIS}"


def visible(text: str) -> str:
    """Write control characters as escapes, so that a fact cannot steer the terminal that shows it.

    So are those that turn the direction of writing for all that follows; right-to-left letters stay as they are.
    """
    text = TURNED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return "".join(
        char if char == "\n" or unicodedata.category(char) != "Cc" else f"\\x{ord(char):02x}" for char in text
    )
