"""The log of a workspace, a stream beside its graph on one FalkorDB server.

The log is `cm:{name}:log`, its counters the hash `cm:{name}:ids`, its branches the hash `cm:{name}:branches`; a
branch's own events are `cm:{name}:<branch>:log`. Entries are appended by a server-side script.
"""

import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import redis

from contextmesh.core.events import SCHEMA_VERSION, Event, decode, encode, to_json
from contextmesh.core.forked import (
    ForkedEventStore,
    assembled,
    check_cut,
    check_drop,
    check_fork,
    check_forks,
    dropped_branch,
    iter_pages,
    missing_event,
)
from contextmesh.core.stores import Branch, Entry
from contextmesh.errors import ConcurrentWriterError, CorruptedEventPayloadError
from contextmesh.stores.keyspace import OUTAGES, check_name, lost, refused, retried
from contextmesh.stores.server import Server

MAX_RESENDS = 10
_Line = tuple[str, dict[str, str]]  # an entry id, and what the entry holds

# An entry's id is its position. The header `<base>-1` sorts before the first entry and after a parent's last.
# A branch's header is written when it is forked, so a branch without one was dropped and takes nothing.
APPEND = """
local top = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local tip = tonumber(ARGV[3])
if #top > 0 then
  tip = tonumber(string.match(top[1][1], '^(%d+)'))
elseif ARGV[4] == '' then
  return {'gone', tip}
else
  redis.call('XADD', KEYS[1], ARGV[3] .. '-1', 'v', '1', 'header', ARGV[4])
end
if tip ~= tonumber(ARGV[1]) then return {'conflict', tip} end
local last = tip + #ARGV - 5
for i = 6, #ARGV do
  redis.call('XADD', KEYS[1], (tip + i - 5) .. '-0', 'v', ARGV[5], 'event', ARGV[i], 'commit', ARGV[2], 'last', last)
end
return {'ok', last}
"""
COUNT = """
if ARGV[4] ~= '' and redis.call('EXISTS', KEYS[2]) == 0 then return 'gone' end
if ARGV[1] == 'HINCRBY' then return redis.call('HINCRBY', KEYS[1], ARGV[2], ARGV[3]) end
local now = tonumber(redis.call('HGET', KEYS[1], ARGV[2]) or '0')
if now < tonumber(ARGV[3]) then redis.call('HSET', KEYS[1], ARGV[2], ARGV[3]) end
return 1
"""
# A stream never takes an id below one that was deleted, so what stays is written to a new stream.
TRUNCATE = """
for _, text in ipairs(redis.call('HVALS', KEYS[3])) do
  local row = cjson.decode(text)
  if row.parent == ARGV[2] and not row.dropped and row.position >= tonumber(ARGV[1]) then return -1 end
end
local rows = redis.call('XRANGE', KEYS[1], '-', ARGV[1] .. '-1')
redis.call('DEL', KEYS[2])
for _, row in ipairs(rows) do redis.call('XADD', KEYS[2], row[1], unpack(row[2])) end
if #rows > 0 then redis.call('RENAME', KEYS[2], KEYS[1]) else redis.call('DEL', KEYS[1]) end
return #rows
"""
FORK = """
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then return {'used', redis.call('HGET', KEYS[2], ARGV[1])} end
local top = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local tip = 0
if #top > 0 then tip = tonumber(string.match(top[1][1], '^(%d+)')) end
if tonumber(ARGV[2]) > tip then return {'short', tip} end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
redis.call('DEL', KEYS[3], KEYS[4])
redis.call('XADD', KEYS[3], ARGV[2] .. '-1', 'v', '1', 'header', ARGV[4])
return {'ok', tip}
"""
# The name stays in the hash, marked: it is never given to another branch.
DROP = """
local text = redis.call('HGET', KEYS[1], ARGV[1])
if not text then return 'missing' end
local row = cjson.decode(text)
if row.dropped then return 'missing' end
for _, other in ipairs(redis.call('HVALS', KEYS[1])) do
  local child = cjson.decode(other)
  if child.parent == ARGV[1] and not child.dropped then return 'children' end
end
row.dropped = true
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(row))
redis.call('DEL', KEYS[2], KEYS[3])
return 'ok'
"""


class FalkorDBEventStore:
    """A workspace's log, or a branch's tail: a stream whose entry ids are the positions. It is never trimmed.

    Args:
        server: an open FalkorDB.
        name: the workspace.
        key: the stream's key; by default the workspace's own.
        branch: the branch's record, for the tail of one.
    """

    def __init__(self, server: Server, name: str, *, key: str | None = None, branch: Branch | None = None) -> None:
        self._server = server
        self.name = check_name(name)
        self.branch_name = branch.name if branch else ""
        self.base = branch.position if branch else 0
        self._prefix = f"cm:{{{name}}}:"
        self.key = key or self._key("log", self.branch_name)
        self._ids = self._key("ids", self.branch_name)
        self._run_id = branch.run_id if branch else ""
        self._lock = threading.Lock()
        self._positions: dict[str, int] = {}
        self._indexed = self.base

    def __repr__(self) -> str:
        return f"<FalkorDBEventStore: {self.name!r}{f', branch {self.branch_name!r}' if self.branch_name else ''}>"

    def _key(self, part: str, branch: str = "") -> str:
        return f"{self._prefix}{branch}:{part}" if branch else f"{self._prefix}{part}"

    @property
    def run_id(self) -> str:  # noqa: D102 - the protocol says it, here and below
        if not self._run_id:
            rows = self._range("-", f"{self.base}-1", 1)
            if not rows:
                self.begin()
                rows = self._range("-", f"{self.base}-1", 1)
            header = msgspec.json.decode(rows[0][1].get("header", "{}")) if rows else {}
            self._run_id = str(header.get("run") or self.key)
        return self._run_id

    def exists(self) -> bool:
        """Whether the log has been begun."""
        return bool(retried(self._server, lambda: self._server.redis.exists(self.key)))

    def beside(self) -> "FalkorDBEventStore":
        """Return a new log under a key of its own, to be filled and then put in this one's place."""
        key = f"{self._prefix}restore-{uuid.uuid4().hex[:12]}:log"
        return FalkorDBEventStore(self._server, self.name, key=key)

    def take(self, other: "FalkorDBEventStore") -> bool:
        """Put a complete log in this one's place, unless this one has begun meanwhile."""
        return bool(retried(self._server, lambda: self._server.redis.renamenx(other.key, self.key)))

    def tip(self) -> int:  # noqa: D102
        top: Any = retried(self._server, lambda: self._server.redis.xrevrange(self.key, count=1))
        if not top and self.branch_name:  # a branch begins with its header
            raise dropped_branch(self.branch_name)
        return _position(top[0][0]) if top else self.base

    def begin(self) -> None:
        """Write the header entry, if the log has none yet."""
        self._append([], -1, "")

    def _append(self, events: Sequence[Event], expected: int, commit_id: str) -> Any:
        header = "" if self.branch_name else self._header("", 0, uuid.uuid4().hex)
        lines = [expected, commit_id, self.base, header, SCHEMA_VERSION, *map(encode, events)]
        outcome = self._script(APPEND, [self.key], lines)
        if outcome[0] == "gone":
            raise dropped_branch(self.branch_name)
        return outcome

    def append_many(self, events: Sequence[Event], *, expected: int, commit_id: str) -> int:  # noqa: D102
        # After an outage the outcome is unknown: the very same batch again, same id, same expectation.
        outcome, tip = self._append(events, expected, commit_id)
        if outcome == "ok" or self._landed(expected, commit_id):
            return expected + len(events)
        msg = f"the log ends at {tip}, this write expected {expected}; read again and repeat it"
        raise ConcurrentWriterError(msg)

    def _header(self, parent: str, position: int, run_id: str) -> str:
        return to_json({"parent": parent or None, "position": position, "run": run_id})

    def _landed(self, expected: int, commit_id: str) -> bool:
        """Whether the log holds this commit right after the expected position."""
        at = f"{expected + 1}-0"
        rows = self._range(at, at, None)
        return bool(rows) and rows[0][1].get("commit") == commit_id

    def _script(self, script: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run a script whose repetition is harmless, until its outcome is known."""
        self._server.check_open()
        for _ in range(MAX_RESENDS):
            try:
                return self._server.eval(script, len(keys), *keys, *args)
            except OUTAGES:
                self._server.reconnect()
            except redis.ResponseError as error:
                raise refused(error) from None
        raise lost(self._server)

    def append(self, event: Event) -> int:  # noqa: D102
        while True:
            try:
                return self.append_many([event], expected=self.tip(), commit_id=uuid.uuid4().hex)
            except ConcurrentWriterError:
                continue

    def read(self, after: int, limit: int) -> list[Entry]:  # noqa: D102
        if limit < 1:
            return []
        rows = self._range(f"{after + 1}-0", "+", limit)
        if not rows:
            self.tip()  # refuses a branch that was dropped, which would read as one without events
        if rows and _last(rows[-1]) > _position(rows[-1][0]):
            rows += self._range(f"{_position(rows[-1][0]) + 1}-0", f"{_last(rows[-1])}-0", None)
        return [_entry(row) for row in rows]

    def _range(self, low: str, high: str, count: int | None) -> list[_Line]:
        limit = () if count is None else ("COUNT", count)
        found = retried(self._server, lambda: self._server.command("XRANGE", self.key, low, high, *limit))
        return [(at, _named(row)) for at, row in found]

    def iter_events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:  # noqa: D102
        return iter_pages(self, after, until)

    def get_event(self, event_id: str) -> Event:  # noqa: D102
        position = self._index().get(event_id)
        if position is None:
            raise missing_event(event_id)
        return next(self.iter_events(position - 1, position))

    def position_of(self, event_id: str) -> int | None:  # noqa: D102
        return self._index().get(event_id)

    def _index(self) -> dict[str, int]:
        """Return event id -> position, read on from where it ended last time."""
        with self._lock:
            for event in self.iter_events(self._indexed):
                self._indexed += 1
                self._positions[event.id] = self._indexed
            return self._positions

    def count(self) -> int:  # noqa: D102
        return self.tip()

    def reserve(self, counter: str, n: int) -> int:  # noqa: D102
        if self.branch_name:
            last = self._count("HINCRBY", counter, n)
        else:
            last = retried(self._server, lambda: self._server.redis.hincrby(self._ids, counter, n))
        return int(last) - n + 1

    def raise_counter(self, counter: str, at_least: int) -> None:  # noqa: D102
        self._count("RAISE", counter, at_least)

    def _count(self, what: str, counter: str, n: int) -> Any:
        # A number that is reserved twice after an outage is a gap, and gaps are legal.
        found = self._script(COUNT, [self._ids, self.key], [what, counter, n, self.branch_name])
        if found == "gone":
            raise dropped_branch(self.branch_name)
        return found

    def truncate_after(self, position: int) -> None:  # noqa: D102
        row = self._range(f"{position}-0", f"{position}-0", None) if position > self.base else []
        check_cut(position, self.tip(), _last(row[0]) if row else position)
        check_forks(position, self.branch_name, self.branches())
        keys = [self.key, self._key("cut", self.branch_name), self._key("branches")]
        if self._script(TRUNCATE, keys, [position, self.branch_name]) < 0:
            check_forks(position, self.branch_name, self.branches())
        with self._lock:
            self._positions, self._indexed = {}, self.base

    # branches

    def fork(self, branch: Branch) -> ForkedEventStore:  # noqa: D102
        check_fork(branch, self.tip(), used=False)
        record = _record(branch, self.branch_name)
        keys = [self.key, self._key("branches"), self._key("log", branch.name), self._key("ids", branch.name)]
        header = self._header(self.branch_name, branch.position, branch.run_id)
        outcome, found = self._script(FORK, keys, [branch.name, branch.position, to_json(record), header])
        if outcome == "used" and msgspec.json.decode(found) != record:  # else it is this very call that had landed
            check_fork(branch, branch.position, used=True)
        if outcome == "short":
            check_fork(branch, int(found), used=False)
        made = FalkorDBEventStore(self._server, self.name, branch=branch)
        return ForkedEventStore(self, made, branch.position)

    def branches(self) -> list[Branch]:  # noqa: D102
        found: Any = retried(self._server, lambda: self._server.redis.hgetall(self._key("branches")))
        rows = [(name, msgspec.json.decode(text)) for name, text in sorted(found.items())]
        return [Branch(name=name, **row) for name, row in rows if not row.pop("dropped", False)]

    def branch(self, name: str) -> ForkedEventStore:  # noqa: D102
        return assembled(name, self.branches(), lambda row: FalkorDBEventStore(self._server, self.name, branch=row))

    def drop_branch(self, name: str) -> None:  # noqa: D102
        check_drop(name, self.branches())
        keys = [self._key("branches"), self._key("log", name), self._key("ids", name)]
        if self._script(DROP, keys, [name]) == "children":
            check_drop(name, self.branches())

    def retire(self, names: Iterable[str]) -> None:
        """Never give these names to a branch: ids of this log carry them already, as after a restore."""
        for name in sorted(names):
            gone = to_json({"label": name, "parent": "", "position": 0, "dropped": True})
            retried(self._server, partial(self._server.redis.hsetnx, self._key("branches"), name, gone))

    def close(self) -> None:  # noqa: D102 - the server is its opener's to close
        return


def _record(branch: Branch, parent: str) -> dict[str, Any]:
    return {
        "label": branch.label,
        "parent": parent,
        "position": branch.position,
        "run_id": branch.run_id,
        "created_at": branch.created_at,
    }


def _named(row: Any) -> dict[str, str]:
    """Return what an entry holds: a plain reply has names and values in turn, a cluster's client a mapping."""
    if isinstance(row, dict):
        return row
    turns = iter(row)
    return dict(zip(turns, turns, strict=True))


def _position(entry_id: str) -> int:
    return int(entry_id.partition("-")[0])


def _last(row: _Line) -> int:
    return int(row[1].get("last", _position(row[0])))


def _entry(row: _Line) -> Entry:
    at, line = row
    position = _position(at)
    text = line.get("event")
    if text is None:
        msg = f"the log entry at position {position} holds no event; restore the log from an export"
        raise CorruptedEventPayloadError(msg)
    version = line.get("v", "1")
    event = decode(text, position, int(version) if version.isdecimal() else 0)
    return Entry(position=position, event=event, last=int(line.get("last", position)), size=len(text))
