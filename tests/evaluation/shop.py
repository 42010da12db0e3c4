"""The small set that ships: an invented shop's sessions, and questions about them. It says in itself that it is."""

import json
from pathlib import Path

from contextmesh import Workspace
from tests.evaluation.dataset import Corpus, Question

PLACE = Path(__file__).with_name("shop.json")


def read_shop(path: Path = PLACE) -> Corpus:
    """Read the set."""
    content = json.loads(path.read_text(encoding="utf-8"))

    def fill(ws: Workspace) -> None:
        for fact in content["entities"]:
            ws.fact(**fact, synthetic=True)
        for source, type_, target in content["relations"]:
            ws.relate(source, type_, target)
        for session in content["sessions"]:
            for key, author, text in session["notes"]:
                ws.session(session["label"]).note(text, id=key, at=session["at"], author=author)

    questions = (Question(text=text, gold=frozenset(gold), group=group) for text, gold, group in content["questions"])
    return Corpus(name="shop (synthetic)", fill=fill, questions=tuple(questions))
