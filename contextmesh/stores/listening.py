"""The Cypher that a store sends, for whoever wants to see it: exactly the text that the server got."""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from contextmesh.core.events import to_json

VALUE_SHOWN = 160  # characters of a parameter; a commit carries whole objects
NAME = re.compile(r"(\w+)=")
HEADER = "CYPHER "


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One Cypher query as it was sent.

    Args:
        text: the query itself, whole.
        parameters: name -> value as Cypher reads it, cut after 160 characters.
        writes: whether it was sent as one that may write; the server refuses a write in any other.
    """

    text: str
    parameters: Mapping[str, str]
    writes: bool


class Listeners:
    """Who listens to a store; where nobody does, telling costs next to nothing."""

    def __init__(self) -> None:
        self._open: tuple[tuple[int, list[Query]], ...] = ()

    def tell(self, query: str, parameters: Mapping[str, Any], *, writes: bool) -> None:
        """Let those who listen in this thread know what is being sent."""
        for thread, heard in self._open:
            if thread == threading.get_ident():
                heard.append(as_sent(query, parameters, writes=writes))

    @contextmanager
    def listening(self) -> Iterator[list[Query]]:
        """Collect what this thread sends meanwhile, in order."""
        mine: tuple[int, list[Query]] = (threading.get_ident(), [])
        self._open = (*self._open, mine)
        try:
            yield mine[1]
        finally:
            self._open = tuple(other for other in self._open if other is not mine)


def as_sent(query: str, parameters: Mapping[str, Any], *, writes: bool) -> Query:
    """Return a query apart from its parameters, those that stand written before it included.

    Example:
        >>> as_sent('CYPHER id="a b" MATCH (n {id: $id}) RETURN n', {}, writes=False)
        Query(text='MATCH (n {id: $id}) RETURN n', parameters={'id': '"a b"'}, writes=False)
    """
    values = {name: _shortened(to_json(value)) for name, value in parameters.items()}
    at = len(HEADER) if query.startswith(HEADER) else 0
    while found := NAME.match(query, at):
        end = _end_of_value(query, found.end())
        values[found[1]] = _shortened(query[found.end() : end])
        at = end + 1
    return Query(text=query[at:], parameters=values, writes=writes)


def _end_of_value(text: str, start: int) -> int:
    """Return where a written value ends: at the first blank outside of brackets and texts."""
    depth, quote, at = 0, "", start
    while at < len(text) and (quote or depth or text[at] != " "):
        char = text[at]
        if quote:
            at += char == "\\"  # and what follows it
            quote = "" if char == quote else quote
        else:
            quote = char if char in '"`' else ""
            depth += (char in "[{") - (char in "]}")
        at += 1
    return at


def _shortened(value: str) -> str:
    return value if len(value) <= VALUE_SHOWN else f"{value[:VALUE_SHOWN]} … ({len(value):,} characters)"
