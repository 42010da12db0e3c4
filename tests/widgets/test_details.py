"""The detail panel: what it tells of an object, and where its buttons lead."""

from collections.abc import Callable

import pytest

from contextmesh.core.events import TickingClock
from contextmesh.core.graph import Graph
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets import DetailPanel, State, details
from tests.conftest import START
from tests.widgets.reading import HOSTILE, Tags, is_literal, shown


def ways(panel: DetailPanel) -> list[str]:
    """What the buttons along the relations say."""
    return [button.description for button in panel._connected.children]


def told(panel: DetailPanel) -> str:
    return Tags(shown(panel)).text


@pytest.fixture
def memory() -> Graph:
    """A graph whose store makes no difference."""
    return Graph(clock=TickingClock(START))


def test_properties_relations_provenance_and_history(acme: Workspace) -> None:
    panel = DetailPanel(acme)
    assert "Nothing is selected" in told(panel)
    panel.state.selection = "checkout-api"
    text = told(panel)
    assert "Checkout API" in text
    assert "Entity · checkout-api · version 1" in text
    assert "entity_typesystem" in text  # a row's header and its cell
    assert ways(panel) == [
        "DEPENDS_ON → Redis sessions",
        "OWNED_BY → Maya Chen",
        "AFFECTS ← Checkout errors",
        "AFFECTS ← INC-104",
        "AFFECTS ← Release 2.4",
    ]
    assert "created byobject.created by importer, position 6," in text
    assert "actorimporter" in text
    assert "History, newest first" in text
    panel.close()


def test_walking_along_relations_and_back(acme: Workspace) -> None:
    panel = DetailPanel(acme)
    panel.state.selection = "checkout-api"
    panel._buttons[ways(panel).index("OWNED_BY → Maya Chen")].click()
    assert panel.state.selection == panel.selection == "maya-chen"
    assert "OWNED_BY ← Checkout API" in ways(panel)
    panel.back.click()
    assert (panel.selection, panel.back.layout.display) == ("checkout-api", "none")
    panel.close()


def test_a_revised_note_tells_its_history(acme: Workspace) -> None:
    note = acme.session("Monday night").note("Checkout errors rose at 14:05, after Release 2.4")
    acme.revise(note.id, "Checkout errors rose at 14:06", author="maya")
    panel = DetailPanel(acme)
    panel.state.selection = note.id
    text = told(panel)
    assert "version 2" in text
    assert "last changed bypatch.applied by maya" in text
    newest, oldest = text.index("patch.appliedmaya"), text.index("object.createduser")
    assert newest < oldest
    panel.close()


def test_many_relations_come_in_parts(memory: Graph) -> None:
    memory.add_object("Entity", {"label": "Hub"}, id="hub")
    for n in range(10, 29):
        memory.add_object("Entity", {"label": f"Service {n}"}, id=f"s{n}")
        memory.add_relation("hub", f"s{n}", "DEPENDS_ON")
    panel = DetailPanel(memory)
    panel.state.selection = "hub"
    assert ways(panel) == [f"DEPENDS_ON → Service {n}" for n in range(10, 18)]
    assert "19 connected relations, 1 to 8" in told(panel)
    panel.more.click()
    panel.more.click()
    assert ways(panel) == [f"DEPENDS_ON → Service {n}" for n in range(26, 29)]
    panel._buttons[7].click()  # of no relation that is shown: a click that came late
    assert panel.selection == "hub"
    panel.more.click()
    assert ways(panel)[0] == "DEPENDS_ON → Service 10"
    panel.close()


def test_an_end_without_an_object_and_an_object_that_is_gone(memory: Graph) -> None:
    memory.add_object("Entity", {"label": "Checkout API"}, id="api")
    memory.add_relation("api", "nobody", "OWNED_BY")
    panel = DetailPanel(memory)
    panel.state.selection = "api"
    assert ways(panel) == ["OWNED_BY → nobody (not there)"]
    memory.remove_object("api")
    panel.refresh()
    assert "It is not there" in told(panel)
    assert "object.removed" in told(panel)
    assert ways(panel) == []
    panel.close()


def test_a_long_log_is_searched_only_when_asked(memory: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(details, "READ_AT_ONCE", 1)
    memory.add_object("Entity", {"label": "Checkout API"}, id="api")
    memory.patch_object("api", {"tier": 1})
    panel = DetailPanel(memory)
    panel.state.selection = "api"
    assert (panel.read_history.description, "History" in told(panel)) == ("Read the history (3 events)", False)
    panel.read_history.click()
    assert "patch.applied" in told(panel)
    panel.close()


def test_values_of_every_kind(memory: Graph) -> None:
    data = {
        "label": "A",
        "tags": ["x", "y"],
        "owner": {"name": "Maya", "since": 2024},
        "tier": 1,
        "on": True,
        "no": None,
    }
    memory.add_object("Entity", data | {"text": "z" * 5000, "mixed": [1, "a"]}, id="a")
    panel = DetailPanel(memory)
    panel.state.selection = "a"
    text = told(panel)
    for line in ("tagsx, y", "owner.nameMaya", "owner.since2024", "tier1", "ontrue", "nonull", 'mixed[1,"a"]'):
        assert line in text
    assert "z" * 4000 + " …" in text
    panel.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(memory: Graph, text: str) -> None:
    memory.add_object("Entity", {"label": text, "text": text, text: text}, id="a", actor=text)
    memory.add_object("Entity", {"label": text}, id="b")
    memory.add_relation("a", "b", "DEPENDS_ON")
    panel = DetailPanel(memory)
    panel.state.selection = "a"
    plain = text.replace("\u202e", "\\u202e")
    assert is_literal(shown(panel), plain)
    assert is_literal(panel.to_html(), plain)
    assert "<script" not in panel.to_html()
    assert "<img" not in panel.to_html()
    panel.close()


def test_what_goes_wrong_is_said(memory: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = DetailPanel(memory)

    def fail(_ids: object) -> None:
        raise ConnectionError("gone")

    monkeypatch.setattr(memory, "get_objects", fail)
    panel.state.selection = "a"
    assert panel.status.text == "select failed: ConnectionError: gone"
    panel.close()


def test_it_leaves_a_still_picture(acme: Workspace, displayed: list[dict[str, str]]) -> None:
    panel = DetailPanel(acme, state=State(selection="maya-chen"))
    panel._ipython_display_()
    live, still = displayed
    assert "application/vnd.jupyter.widget-view+json" in live
    assert still["text/plain"] == "<DetailPanel: maya-chen>"
    assert "OWNED_BY ←Checkout API" in Tags(still["text/html"]).text
    panel.close()


def test_closing_frees_all_and_follows_no_longer(memory: Graph, left_open: Callable[[], set[str]]) -> None:
    state = State()
    panel = DetailPanel(memory, state=state)
    panel.close()
    panel.close()
    state.selection = "a"
    assert left_open() == set()


def test_a_mark_that_turns_writing_is_named_in_a_field_s_name_too(memory: Graph) -> None:
    memory.add_object("Entity", {"\u202eright": {"\u202eleft": 1}}, id="a")
    panel = DetailPanel(memory)
    panel.state.selection = "a"
    assert "\\u202eright.\\u202eleft" in told(panel)
    assert "\u202e" not in shown(panel)
    panel.close()


def test_a_long_log_is_read_only_when_asked(memory: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.add_object("Entity", {"label": "Checkout API"}, id="a", actor="importer")
    monkeypatch.setattr(details, "LOOKED_UP", 0)
    monkeypatch.setattr(details, "READ_AT_ONCE", 0)
    panel = DetailPanel(memory)
    panel.state.selection = "a"
    assert "reading the history tells more" in told(panel)
    panel.read_history.click()
    assert "created byobject.created by importer, position 1," in told(panel)
    panel.close()
