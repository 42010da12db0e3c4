"""Where a fact comes from, in words."""

from contextmesh.investigation.workspace import Workspace
from tests.investigation.making import entity, reading


def test_a_facts_source_is_its_place(ws: Workspace) -> None:
    facts = [
        entity("a", "quokka", file="postmortem.md", line=12),
        entity("b", "quokka", source="wiki"),
        entity("c", "quokka"),
    ]
    ws.ingest([reading(facts)])
    ws.session("s").note("quokka")
    found = ws.session("t").investigate("quokka?").evidence
    assert dict(zip(found["id"], found["source"], strict=True)) == {
        "a": "postmortem.md:12",
        "b": "wiki",
        "c": "",
        found["id"][found["kind"] == "Memory"].iloc[0]: "user note, not verified",
    }
