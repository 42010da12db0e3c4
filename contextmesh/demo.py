"""AcmeShop: the synthetic incident that demos, notebooks and tests share. Its facts live in `data/`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contextmesh.errors import ImportFileError
from contextmesh.investigation.facts import Fact, Link, Reading, Report
from contextmesh.investigation.workspace import Workspace

HERE = Path(__file__).parent
PLACES = (HERE / "data" / "acmeshop.json", HERE.parent / "data" / "acmeshop.json")  # installed; a checkout


def _read() -> Mapping[str, Any]:
    for place in PLACES:
        if place.is_file():
            content: Mapping[str, Any] = json.loads(place.read_text(encoding="utf-8"))
            return content
    msg = "data/acmeshop.json is missing from this installation; install contextmesh again"
    raise ImportFileError(msg)


def acmeshop(ws: Workspace) -> Report:
    """Load the AcmeShop facts; loading them again changes nothing.

    AcmeShop is synthetic: no real people, systems or incidents. Every fact says so in `data.synthetic`.

    Returns:
        How many facts were added, changed and unchanged.
    """
    content = _read()
    mark = {"source": content["name"], "synthetic": True}
    facts = tuple(Fact(id=row["id"], kind=row["kind"], data={**row["data"], **mark}) for row in content["facts"])
    links = tuple(Link(**row, data=mark) for row in content["links"])
    return ws.ingest([Reading(facts=facts, links=links, skipped=(), source="")])


def notice() -> str:
    """Return the sentence that labels AcmeShop as synthetic."""
    return str(_read()["notice"])


def monday() -> tuple[str, str]:
    """Return the first session's label and note."""
    row = _read()["sessions"][0]
    return row["label"], row["note"]


def tuesday() -> tuple[str, str]:
    """Return the second session's label and question."""
    row = _read()["sessions"][1]
    return row["label"], row["question"]
