"""Postmortems of the same recurring symptom: asked for by the words of one, the others of its group are right."""

import json
from pathlib import Path

from contextmesh import Workspace
from contextmesh.importers.postmortems import read_postmortems
from tests.evaluation.dataset import Corpus, Question

CODE_LENGTH = 10  # of a name such as `PM2021-005 - All services ...`
LONGEST = 2000  # characters of a question


def read_incidents(groups: Path, folder: Path) -> Corpus:
    """Read the groups, and the postmortems as the question's words: title and summary."""
    texts = {}
    for reading in read_postmortems([folder]):
        for head in reading.facts[:1]:  # a file that cannot be read has none
            texts[incident(head.id)] = str(head.data["text"])[:LONGEST]
    questions = []
    for names in json.loads(groups.read_text(encoding="utf-8"))["groups"]:
        ids = {name.casefold() for name in names}
        for key in sorted(ids):
            others = frozenset(ids - {key})
            questions.append(Question(text=texts[key], gold=others, apart=frozenset({key})))

    def fill(ws: Workspace) -> None:
        ws.load.postmortems(folder)

    return Corpus(name="similar incidents", fill=fill, questions=tuple(questions), unit=incident)


def incident(fact_id: str) -> str:
    """Return the code of the postmortem that a fact belongs to; its facts' ids begin with it."""
    return fact_id[:CODE_LENGTH] if fact_id.startswith("pm") else ""
