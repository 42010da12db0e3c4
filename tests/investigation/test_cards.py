"""The words of a card, and that a step keeps what its stage saw and asked."""

from contextmesh.core.events import Event
from contextmesh.core.model import Object, View
from contextmesh.investigation import cards as module
from contextmesh.investigation.cards import Card
from contextmesh.investigation.trace import Placed, StageTrace
from contextmesh.stores.listening import Query


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
