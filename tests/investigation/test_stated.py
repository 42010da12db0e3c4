"""Facts and relations that a user states by hand, and a connection that may only read."""

import pytest

from contextmesh.errors import InvalidNameError, NotFoundError, ReadOnlyError, UsageError
from contextmesh.investigation.graphs import open_graph
from contextmesh.investigation.workspace import Workspace
from contextmesh.stores.connection import make_client
from contextmesh.stores.server import Server


def gateway(ws: Workspace) -> None:
    ws.fact("badge-gateway", "Badge gateway", "Opens the doors.", entity_type="system", aliases=["gateway"])
    ws.fact("ines", "Ines", "Ines owns the badge gateway.", entity_type="person")
    ws.fact("chg-77", "CHG-77", "CHG-77 renewed the LDAP certificate.", entity_type="change")
    ws.relate("chg-77", "AFFECTS", "badge-gateway")
    ws.relate("badge-gateway", "OWNED_BY", "ines")


def test_an_investigation_of_facts_stated_by_hand(ws: Workspace) -> None:
    gateway(ws)
    answer = ws.session("night").investigate("Who owns the gateway, and what changed with the certificate?").answer
    assert (
        "Candidate to investigate, not an established cause: CHG-77 (chg-77), recorded as affecting Badge gateway"
        in answer
    )
    assert "Recorded owner of Badge gateway: Ines." in answer


def test_stating_again_changes_nothing_and_stating_otherwise_changes_it(ws: Workspace) -> None:
    gateway(ws)
    position = ws.graph.position
    gateway(ws)
    assert ws.graph.position == position
    assert ws.fact("ines", "Ines K.", entity_type="person").version == 2
    assert list(ws.history("ines")["text"]) == ["Ines owns the badge gateway.", "", ""]


def test_an_earlier_note_is_linked_to_a_fact_that_comes_later(ws: Workspace) -> None:
    note = ws.session("night").note("The gateway answers 503")
    gateway(ws)
    assert [row.target for row in ws.graph.relations(source=note.id, type="MENTIONS")] == ["badge-gateway"]


def test_what_cannot_be_stated_is_refused(ws: Workspace) -> None:
    gateway(ws)
    note = ws.session("night").note("words")
    position = ws.graph.position
    with pytest.raises(UsageError, match="a fact of kind 'Memory'; expected one of Entity, Evidence"):
        ws.fact("x", "X", kind="Memory")
    with pytest.raises(UsageError, match="is a Memory already"):
        ws.fact(note.id, "X")
    with pytest.raises(InvalidNameError, match="'no id' is no id"):
        ws.fact("no id", "X")
    with pytest.raises(InvalidNameError, match="'OWNS_BY' is no relation of this vocabulary"):
        ws.relate("badge-gateway", "OWNS_BY", "ines")
    with pytest.raises(NotFoundError, match="no object 'nobody'"):
        ws.relate("badge-gateway", "OWNED_BY", "nobody")
    assert ws.graph.position == position


@pytest.mark.parametrize(
    ("commands", "lag"),
    [
        ("+graph.ro_query +info +ping", "its log is not readable here"),
        ("+graph.ro_query +info +ping +xrange +xrevrange", "2 events behind its log"),
    ],
)
def test_a_read_only_connection_reads_what_is_there(acme: Workspace, server: Server, commands: str, lag: str) -> None:
    head = acme.graph.position
    acme.graph.log.append_many(_two_events(acme), expected=head, commit_id="ahead")
    server.redis.acl_setuser("reader", enabled=True, passwords=["+hush"], keys=["*"], commands=commands.split())
    assert server._folder is not None
    client = make_client(unix_socket_path=str(server._folder._socket()), username="reader", password="hush")
    reading = Server(client, "a test", "server")
    reader = Workspace(reading, open_graph(reading, acme.name, None), acme.name)
    assert repr(reader) == f"<Workspace '{acme.name}': <Graph at position {head}>, read-only, {lag}, a test>"
    assert list(reader.search("session ttl")["id"]) == list(acme.search("session ttl")["id"])
    assert list(reader.paths("redis-change", "maya-chen")["hops"]) == [2]
    for write in (
        lambda: reader.session("s").note("x"),
        lambda: reader.session("s").investigate("who owns it?"),
        lambda: reader.fact("x", "X"),
        reader.rebuild,
    ):
        with pytest.raises(ReadOnlyError, match=r"may read and not write|does not let this user"):
            write()
    server.redis.acl_deluser("reader")
    assert acme.graph.catch_up() == head + 2


def _two_events(ws: Workspace) -> list:
    from contextmesh.core.events import Event  # noqa: PLC0415

    newest = ws.graph.events[-1].timestamp
    return [Event(id=f"ahead-{n}", type="x", payload={}, timestamp=newest) for n in (1, 2)]
