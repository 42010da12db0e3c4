"""What a question states besides its words: phrases, identifiers, times, and the things that it names. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from contextmesh.core.model import Object
from contextmesh.core.terms import sequence, terms

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
ALSO_VERBS = ("march", "may")  # they mean a month only where they are capitalised inside a sentence
EARLIER, LATER = ("before", "until", "till", "prior"), ("after", "since", "following")
TIME_FIELDS = ("occurred_at", "time", "started_at")

_QUOTES = (('"', '"'), ("\u201c", "\u201d"), ("\u2018", "\u2019"), ("«", "»"), ("'", "'"))
_QUOTED = re.compile(rf"(?<!\w)(?:{'|'.join(f'{begin}([^{end}]+){end}(?!\\w)' for begin, end in _QUOTES)})")
_YEAR = re.compile(r"(?<![\w.,-])((?:19|20)\d\d)(?![\w,]|\.\d)")
_YEAR_MONTH = re.compile(r"(?<![\w.,-])((?:19|20)\d\d)-(0[1-9]|1[0-2])(?!\d)")
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a question states besides its words.

    Args:
        phrases: what it quotes, each as its search terms in order.
        identifiers: search terms of whole identifiers, such as `inc_104`.
        months: months that it names, 1 to 12.
        years: years that it names.
        side: -1 where it asks for what came before something, 1 for after, 0 where it says neither.
    """

    phrases: tuple[tuple[str, ...], ...] = ()
    identifiers: tuple[str, ...] = ()
    months: tuple[int, ...] = ()
    years: tuple[int, ...] = ()
    side: int = 0

    def fits_date(self, moment: datetime) -> float:
        """Return how well a moment fits the months and years: 0 to 1."""
        in_month, in_year = moment.month in self.months, moment.year in self.years
        if self.months and self.years:
            return float(in_month and in_year) or (0.5 if in_year else 0.0)
        return float(in_month or in_year)


def read_question(question: str) -> Asked:
    """Read what a question states besides its words.

    Example:
        >>> asked = read_question('What did "session store" say after INC-104, in March 2026?')
        >>> asked.phrases, asked.identifiers, asked.months, asked.years, asked.side
        ((('session', 'store'),), ('inc_104',), (3,), (2026,), 1)
    """
    quoted = ("".join(found.groups("")) for found in _QUOTED.finditer(question))
    dated = _YEAR_MONTH.findall(question)
    years = {int(year) for year in [*_YEAR.findall(question), *(year for year, _ in dated)]}
    words = [found[0] for found in _WORD.finditer(question)]
    folded = {word.casefold() for word in words}
    sides = [side for side, names in ((-1, EARLIER), (1, LATER)) if folded & set(names)]
    return Asked(
        phrases=tuple(phrase for text in quoted if (phrase := tuple(sequence(text)))),
        identifiers=tuple(term for term in terms(question) if "_" in term),
        months=tuple(sorted(_months(words) | {int(month) for _, month in dated})),
        years=tuple(sorted(years)),
        side=sides[0] if len(sides) == 1 else 0,
    )


def _months(words: list[str]) -> set[int]:
    found = set()
    for at, word in enumerate(words):
        folded = word.casefold()
        if folded in MONTHS and (folded not in ALSO_VERBS or (at and word[0].isupper())):
            found.add(MONTHS.index(folded) + 1)
    return found


def moment_of(data: Mapping[str, object]) -> datetime | None:
    """Return when something happened, by the first of its times that states date and zone; never when it was saved."""
    for name in TIME_FIELDS:
        written = data.get(name)
        try:
            found = datetime.fromisoformat(written) if isinstance(written, str) else None
        except ValueError:
            continue
        if found and found.tzinfo:
            return found
    return None


def names_of(row: Object) -> list[str]:
    """Return what an object is called: its label and its aliases."""
    aliases = row.data.get("aliases")
    names = [row.data.get("label"), *(aliases if isinstance(aliases, list) else [])]
    return [name for name in names if isinstance(name, str) and name.strip()]


def is_named(name: str, text: str) -> bool:
    """Whether a text names something: as whole words, in any case, however it is spaced."""
    words = r"\s+".join(re.escape(word) for word in name.casefold().split())
    return re.search(rf"(?<!\w)(?<!\w[.\-]){words}(?![.\-]?\w)", text.casefold()) is not None
