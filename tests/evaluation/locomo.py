"""Long conversations with questions and the turns that hold the evidence, as LoCoMo publishes them.

Each conversation is a workspace, each of its sessions a session, each turn a note by its speaker at the session's time.
The data may be used for evaluation only, so none of it is kept here.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contextmesh import Workspace
from tests.evaluation.dataset import Corpus, Question

LOCOMO = "locomo"
SEVERAL_TURNS = "several turns"
SEVERAL = 1  # the category of the questions that need several turns


def read_locomo(path: Path) -> list[Corpus]:
    """Read the conversations of a file, in its order."""
    return [_corpus(row) for row in json.loads(path.read_text(encoding="utf-8"))]


def _corpus(row: Mapping[str, Any]) -> Corpus:
    turns = list(_turns(row["conversation"]))
    known = {key for *_, key, _ in turns}
    questions = []
    for asked in row["qa"]:
        gold = {name for text in asked["evidence"] for name in re.split(r"[;,\s]+", text)} & known
        if gold:
            group = SEVERAL_TURNS if asked["category"] == SEVERAL else ""
            ids = frozenset(map(_id, gold))
            questions.append(Question(text=str(asked["question"]), gold=ids, group=group))

    def fill(ws: Workspace) -> None:
        for session, at, author, key, text in turns:
            ws.session(session).note(text, id=_id(key), at=at, author=author)

    return Corpus(name=f"{LOCOMO} {row['sample_id']}", fill=fill, questions=tuple(questions))


def _turns(conversation: Mapping[str, Any]) -> Iterator[tuple[str, datetime, str, str, str]]:
    names = [name for name in conversation if re.fullmatch(r"session_\d+", name)]
    for name in sorted(names, key=lambda name: int(name.removeprefix("session_"))):
        at = datetime.strptime(conversation[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in conversation[name]:
            yield name, at, turn["speaker"], turn["dia_id"], turn["text"]


def _id(key: str) -> str:
    return f"turn-{key.replace(':', '-')}"
