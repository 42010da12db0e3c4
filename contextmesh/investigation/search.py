"""Search: a question, where to look for its evidence, and how. What retrieval and ranking are given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from contextmesh.core.reader import Reader
from contextmesh.errors import UsageError
from contextmesh.investigation.vocabulary import Vocabulary

Mode = Literal["full", "words", "terms"]
MODES: tuple[Mode, ...] = ("full", "words", "terms")
Similar = Callable[[str, int], Mapping[str, float]]  # (text, at most so many) -> id -> cosine, nearest first


@dataclass(frozen=True, slots=True)
class Search:
    """A question, where to look for its evidence, and how.

    Args:
        question: what was asked.
        reader: the graph to look in.
        vocabulary: whose kinds, relations and bounds count.
        mode: `full` ranks by words, names, sessions, participants and times; `words` by BM25 alone; `terms` by how
            many and how rare the matched terms are, as the first retriever did.
        similar: what finds facts that are close in meaning; not for the mode `terms`.
        limit: facts to look at, if more than the vocabulary's `candidates`.

    Raises:
        UsageError: another mode.
    """

    question: str
    reader: Reader
    vocabulary: Vocabulary
    mode: Mode = field(default="full", kw_only=True)
    similar: Similar | None = field(default=None, kw_only=True)
    limit: int = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            msg = f"the mode is {self.mode!r}; expected one of {', '.join(map(repr, MODES))}"
            raise UsageError(msg)

    @property
    def candidates(self) -> int:
        """How many facts that share terms with the question are scored."""
        return max(self.limit, self.vocabulary.bounds.candidates)
