"""What a hypothesis must leave as it was, and all that could hold a key."""

import json
from pathlib import Path
from typing import Any

import pytest

from contextmesh.investigation.result import Investigation
from contextmesh.investigation.workspace import Workspace

TEXT = "Release 2.4 may have shortened the session TTL."
HEADING = "Model hypothesis (untrusted)"


def records(ws: Workspace) -> list[Any]:
    """What the stages left, to the byte."""
    kinds = ("AgentRun", "Decision", "Task", "Entity", "Memory", "Evidence", "Agent", "Session")
    return [(row.id, row.version, json.dumps(row.data)) for kind in kinds for row in ws.graph.objects(kind)]


def without(inv: Investigation) -> tuple[str, str, str]:
    """The whole investigation as text, JSON and HTML, its hypothesis cut out."""
    text, html = inv.to_text(), inv.to_html()
    lines = text.split("\n")
    if HEADING in lines:
        at = lines.index(HEADING)
        text = "\n".join([*lines[:at], *lines[-1:]])
    before, found, after = html.partition(f"<details open><summary>{HEADING}")
    html = before + after.partition("</details>\n")[2] if found else html
    return text, json.dumps({name: part for name, part in inv.to_dict().items() if name != "hypothesis"}), html


def everything(ws: Workspace, inv: Investigation, tmp_path: Path, logged: pytest.LogCaptureFixture) -> str:
    """All that could hold a key: what is shown, stored, logged, exported."""
    file = tmp_path / "everything.jsonl"
    ws.export(file)
    told = [f"{record.getMessage()} {record.args} {record.exc_text}" for record in logged.records]
    shown = [repr(inv), inv.to_text(), inv.to_html(), json.dumps(inv.to_dict()), repr(inv.__dict__), repr(ws)]
    rows = ws.cypher("MATCH (n) RETURN n")["n"].map(str)
    return "\n".join([*told, logged.text, *shown, *rows, file.read_text(), repr(list(ws.graph.events))])
