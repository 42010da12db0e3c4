"""What surrounds a note: the notes before and after it, its session, and the participants whom a question names."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from contextmesh.core.model import Object
from contextmesh.core.reader import Reader
from contextmesh.core.terms import terms
from contextmesh.investigation.vocabulary import HISTORY

MAX_SESSION = 1000  # the newest notes of a session, among which neighbours are looked for
REACH, FADING = 4, 0.5  # a note passes its score on to so many before and after it, to each further one half as much
SPREAD = 0.97  # what a note counts for each one of its session that was taken before it, among the next best

_ASKS = re.compile(r"[?\uff1f\u061f]\W*$")


def read_members(reader: Reader, sessions: Collection[str]) -> dict[str, list[str]]:
    """Return the notes of each session in the order in which they were taken."""
    links = reader.expand(sessions, ["HAS_MEMORY"], ["Memory"], HISTORY, MAX_SESSION)
    links.sort(key=lambda row: (len(str(row.provenance.get("created_by"))), str(row.provenance.get("created_by"))))
    members: dict[str, list[str]] = {}
    for row in links:
        members.setdefault(row.source, []).append(row.target)
    return members


def passed_on(
    members: Sequence[str], scores: Mapping[str, float], asking: Collection[str]
) -> Iterator[tuple[str, str, float, str]]:
    """Return what the notes of a session pass on to those around them, as (to, part, share, from).

    Args:
        members: the session's notes in order.
        scores: what notes have to pass on.
        asking: those that end with a question; the next note is taken for the reply.

    Example:
        >>> [(to, part, share) for to, part, share, _ in passed_on(["a", "b", "c"], {"a": 1.0}, {"a"})]
        [('b', 'beside', 1.0), ('c', 'beside', 0.5), ('b', 'reply', 1.0)]
    """
    for at, giver in enumerate(members):
        score = scores.get(giver, 0.0)
        if not score:
            continue
        for far in range(1, REACH + 1):
            for place in (at - far, at + far):
                if 0 <= place < len(members):
                    yield members[place], "beside", score * FADING ** (far - 1), giver
        if giver in asking and at + 1 < len(members):
            yield members[at + 1], "reply", score, giver


def asks(row: Object) -> bool:
    """Whether a note ends with a question."""
    return bool(_ASKS.search(str(row.data.get("text", ""))))


def spread(scores: Sequence[float], sessions: Sequence[str | None], first: int, most: int) -> list[int]:
    """Return which places of a ranking to take: the first as they are, the next best spread over the sessions.

    What needs several notes seldom finds them in one session, and many of a session are there by their neighbours.

    Args:
        scores: best first.
        sessions: the session of each, None where it is in none.
        first: so many are taken as they stand.
        most: so many are taken in all.
    """
    taken, rest = list(range(min(first, most, len(scores)))), list(range(min(first, most), len(scores)))
    counts = Counter(sessions[at] for at in taken)
    counts[None] = 0
    while rest and len(taken) < most:
        best = max(rest, key=lambda at: scores[at] * SPREAD ** counts[sessions[at]])
        rest.remove(best)
        taken.append(best)
        if sessions[best] is not None:
            counts[sessions[best]] += 1
    return taken


def named_people(rows: Mapping[str, Object], question: str) -> dict[str, list[str]]:
    """Return the authors of notes whom the question names, each with the terms of the name that it has."""
    asked = terms(question)
    authors = {row.data.get("author") for row in rows.values() if row.type == "Memory"}
    named = {name: [term for term in terms(name) if term in asked] for name in authors if isinstance(name, str)}
    return {name: found for name, found in sorted(named.items()) if found}


def without_names(question: str, said: Collection[str]) -> str:
    """Return a question without the words that are only participants' names, with or without a genitive."""
    return " ".join(word for word in question.split() if not _is_name(word, said))


def _is_name(word: str, said: Collection[str]) -> bool:
    found = terms(word.removesuffix("?").removesuffix("'s").removesuffix("\u2019s"))
    return bool(found) and found.keys() <= set(said)


def scaled(scores: Mapping[str, float]) -> dict[str, float]:
    """Scale scores to 0 for the least and 1 for the greatest."""
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    return {key: (score - low) / (high - low) if high > low else 0.0 for key, score in scores.items()}
