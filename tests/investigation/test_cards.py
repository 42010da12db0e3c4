"""The words of a card, and that a step keeps what its stage saw and asked."""

import pytest

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object, View
from contextmesh.core.runtime import Runtime, behavior
from contextmesh.errors import HandoffError
from contextmesh.investigation import cards as module
from contextmesh.investigation.cards import Card, Cards, StageStep
from contextmesh.investigation.trace import Placed, StageTrace
from contextmesh.investigation.workspace import Workspace
from contextmesh.stores.listening import Query
from tests.investigation.making import QUESTION


def query(text: str, *, writes: bool = False, **parameters: str) -> Query:
    return Query(text=text, parameters=parameters, writes=writes)


def test_every_query_is_told_once_in_the_order_in_which_it_was_first_sent() -> None:
    asked = [query("MATCH (a) RETURN a", x="1"), query("MATCH (b) RETURN b"), query("MATCH (a) RETURN a", x="2")]
    assert module.query_lines([*asked, query("MERGE (h) RETURN h", writes=True)]) == [
        "// read, 2 times; the parameters are those of the first\n// $x = 1\nMATCH (a)\nRETURN a",
        "// read\nMATCH (b)\nRETURN b",
        "// write\nMERGE (h)\nRETURN h",
    ]
    assert module.cypher_of(asked) == "3 queries, none of them to write"
    assert module.cypher_of([query("RETURN 1", writes=True)]) == "1 query, 1 of them to write"


def test_line_breaks_are_all_that_is_added_to_a_query() -> None:
    text = "UNWIND $ids AS i MATCH (n:Node {id: i}) WITH n MATCH (n)-[x]->(m) RETURN m.id ORDER BY m.id"
    [shown] = module.query_lines([query(text)])
    assert " ".join(shown.splitlines()[1:]) == text


def test_a_parameter_stays_one_comment() -> None:
    [shown] = module.query_lines([query("RETURN $t", t='"one\nDROP two"')])
    assert shown.splitlines() == ["// read", '// $t = "one DROP two"', "RETURN $t"]


def test_any_behavior_s_view_is_told() -> None:
    row = Object(id="api", type="Entity", data={})
    view = View(position=1_204, object_rows=(row,), hits=row, paths=["a", "b"])
    assert module.view_of(view) == "as of position 1,204: 1 fact, Entity api, 2 results"
    assert module.view_of(View(position=3)) == "as of position 3: nothing"
    assert module.view_of(View(position=3, hits="text", paths=())) == "as of position 3: nothing"


def placed(type_: str, **payload: object) -> Placed:
    return Placed(position=7, event=Event(type=type_, payload=payload))


def test_what_is_removed_is_told_too() -> None:
    events = [
        placed("behavior.started", behavior="custom"),
        placed("object.removed", id="a", type="Entity"),
        placed("relation.removed", id="r", source="a", target="b", type="AFFECTS"),
        placed("object.created", id="b", object={"type": "Entity", "id": "b"}),
        placed("note.taken", text="as it is"),
    ]
    assert module.changes_of(events) == "+1 Entity, -1 Entity, -1 AFFECTS; positions 7 to 7, one commit"
    assert module.change_lines(events) == ["7: object.removed a", "7: relation.removed r", "7: Entity b"]


def test_many_changes_are_cut_and_counted() -> None:
    events = [placed("object.created", id=f"{n}", object={"type": "Entity", "id": f"{n}"}) for n in range(45)]
    lines = module.change_lines(events)
    assert (len(lines), lines[-1]) == (41, "and 5 more")
    assert module.changes_of(events).startswith("+45 Entity; ")


def test_a_card_is_readable_without_style_sheets() -> None:
    card = Card(trace=StageTrace(stage="planner", state="waiting"))
    html = card.to_html()
    assert "<style" not in html
    assert 'style="box-sizing: border-box; ' in html
    assert repr(card) == "<Card planner: waiting>"


def test_a_step_keeps_what_its_stage_saw_and_asked(acme: Workspace) -> None:
    inv = acme.session("Class").investigate(QUESTION, run=False)
    step = inv.step()
    assert isinstance(step, StageStep)
    [first, *_] = inv.cards.read()
    assert first == step.card
    assert first.view == step.view
    assert first.queries
    inv.run()  # without cards: nobody listens
    assert [card.queries is None for card in inv.cards.read()] == [False, True, True, True]


def test_whoever_watches_is_told_of_steps_and_of_stops(acme: Workspace) -> None:
    inv = acme.session("Class").investigate(QUESTION, run=False)
    told: list[str] = []

    def look() -> None:
        told.append(" ".join(card.state for card in inv.cards.read()))

    inv.cards.watch(look)
    inv.step()
    acme.graph.remove_object("Run#1.researcher")
    with pytest.raises(HandoffError, match="missing from the graph"):
        inv.step()
    assert told == ["done next waiting waiting", "lost stopped waiting waiting"]
    assert inv.cards.read()[1].queries
    inv.cards.unwatch(look)
    inv.cards.unwatch(look)
    assert inv.step() is None
    assert len(told) == 2


def test_a_fifth_stage_has_a_card_too() -> None:
    @behavior(name="greeter", on=["object.created"], where={"object.type": "Guest"})
    def greet(event, graph, ctx):
        graph.add_object("Greeting", {"to": event.payload["id"]}, **ctx.cause)

    graph = Graph()
    graph.add_object("Guest", id="ada")
    step = Cards(graph, "Run#1").step(lambda: Runtime(graph, [greet]).step())
    assert step is not None
    assert "Greeter" in step._repr_html_()
    assert (step.card.state, step.card.rows()["Record"][0]) == ("done", "none of its own")
    assert step.card.rows()["Changes"][0] == "+1 Greeting; positions 2 to 4, one commit"
