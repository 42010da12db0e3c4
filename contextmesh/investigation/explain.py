"""How a question ranks the facts, as a table and a figure that a class can follow: SVG and HTML of our own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from contextmesh.core.display import counted
from contextmesh.core.model import Object
from contextmesh.investigation.palette import INK, PAPER, SOFT
from contextmesh.investigation.ranking import GROWTH, WEIGHTS
from contextmesh.investigation.reasons import reasons
from contextmesh.investigation.retrieval import Retrieval, Seed, ranking, retrieve, shown
from contextmesh.investigation.search import Mode, Search
from contextmesh.investigation.tables import frame
from contextmesh.investigation.words import cut, one_line

if TYPE_CHECKING:
    import pandas as pd

PARTS = ("words", *WEIGHTS, *GROWTH)
# What the figure tells apart, with a colour each (Okabe and Ito's, as in the palette) and the parts that it sums.
GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "its words": ("#0072b2", ("words",)),
    "names, phrases, identifiers": ("#d55e00", ("name", "likely", "phrase", "identifier")),
    "its neighbours and session": ("#009e73", ("beside", "reply", "session")),
    "who and when": ("#c2187f", ("participant", "date", "side")),
    "meaning": ("#a27ef3", ("similarity",)),
}
DRAWN = 20  # facts in the figure
ROWS = 60  # of the table that a notebook shows
WIDTH, LINE, LABEL, FONT = 860, 22, 300, 12
TYPEFACE = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"
COLUMNS = ("rank", "id", "kind", "label", "score", "taken", "reasons", *PARTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How a question ranks the facts. In a notebook it shows itself.

    Args:
        question: as asked.
        mode: how it was ranked.
        ranked: every fact that the question found, best first.
        found: what an investigation of the question would take.
        facts: the facts by id.
        why: id -> why a fact is in the evidence.
        note: what else a reader should know, such as that no embedder is used.
    """

    question: str
    mode: Mode
    ranked: tuple[Seed, ...]
    found: Retrieval
    facts: Mapping[str, Object]
    why: Mapping[str, str]
    note: str = ""

    def __repr__(self) -> str:
        taken = counted(len(self.found.context), "facts")
        return f"<Explanation of {one_line(self.question, 60)!r}: {len(self.ranked)} ranked, {taken} taken>"

    @property
    def table(self) -> "pd.DataFrame":
        """The whole ranking, best first, then what is only related.

        Columns: rank, id, kind, label, score, taken, reasons, and a column for each part of a score.

        `taken` says whether the evidence holds the fact: as a `seed`, as one of the `next best`, as `related`, or not
        at all. The last columns are what the score is the sum of.
        """
        return frame([self._row(place, seed) for place, seed in enumerate(self._all(), 1)], COLUMNS)

    def _all(self) -> list[Seed]:
        known = {seed.id for seed in self.ranked}
        related = [Seed(id=key, score=0.0, terms=()) for key in self.found.context if key not in known]
        return [*self.ranked, *related]

    def _row(self, place: int, seed: Seed) -> tuple[object, ...]:
        fact = self.facts.get(seed.id)
        known = (fact.type, shown(fact)) if fact else ("", seed.id)
        parts = [seed.parts.get(name, 0.0) for name in PARTS]
        return (place, seed.id, *known, seed.score, self._taken(seed.id), self.why.get(seed.id, ""), *parts)

    def _taken(self, key: str) -> str:
        for name, seeds in (("seed", self.found.seeds), ("next best", self.found.also)):
            if any(seed.id == key for seed in seeds):
                return name
        return "related" if key in self.found.context else ""

    @property
    def figure(self) -> str:
        """The first 20 as an SVG picture: a bar a fact, a colour for each kind of reason; every text is escaped."""
        rows = self.ranked[:DRAWN]
        height = 84 + LINE * max(len(rows), 1)
        title = one_line(f"How the facts rank for: {self.question}", 120)
        body = [_text(cut(title, WIDTH - 20, 14), 10, 20, size=14, weight="bold"), *_legend()]
        most = max((seed.score for seed in rows), default=1.0) or 1.0
        for at, seed in enumerate(rows):
            body += self._bar(seed, 64 + LINE * at, (WIDTH - LABEL - 70) / most)
        if not rows:
            body.append(_text("Nothing matches.", 10, 78))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'role="img" aria-label="{escape(title)}" font-family="{escape(TYPEFACE)}" style="max-width:100%">'
            f"<title>{escape(title)}</title><desc>{escape(self._described(rows))}</desc>"
            f'<rect width="{WIDTH}" height="{height}" fill="{PAPER["light"]}"/>{"".join(body)}</svg>'
        )

    def _bar(self, seed: Seed, top: float, scale: float) -> list[str]:
        fact = self.facts.get(seed.id)
        label = one_line(shown(fact) if fact else seed.id, 200)
        taken = bool(self._taken(seed.id))
        ink = INK["light"] if taken else SOFT["light"]
        drawn = [_text(cut(label, LABEL - 50, FONT), 10, top + 15, fill=ink, weight="bold" if taken else "normal")]
        left = float(LABEL)
        for name, color, width in _segments(seed):
            said = escape(f"{name}: {width:.2f}")
            place = f'x="{left:.1f}" y="{top + 4:.1f}" width="{width * scale:.1f}" height="{LINE - 8}"'
            drawn.append(f'<rect {place} fill="{color}" opacity="{1 if taken else 0.45}"><title>{said}</title></rect>')
            left += width * scale
        drawn.append(_text(f"{seed.score:.2f}", left + 6, top + 15, fill=ink))
        return drawn

    def _described(self, rows: Sequence[Seed]) -> str:
        told = [
            f"{at}. {shown(self.facts[row.id])}: {row.score:.2f}"
            for at, row in enumerate(rows, 1)
            if row.id in self.facts
        ]
        return one_line("; ".join(told) or "Nothing matches.", 2000)

    def to_html(self) -> str:
        """Return figure and table as an HTML fragment, every fact escaped; it needs no network and no kernel."""
        rows = self._all()
        shown_rows = [self._row(place, seed) for place, seed in enumerate(rows[:ROWS], 1)]
        heads = ("rank", "label", "score", "taken", "reasons", "id")
        places = [COLUMNS.index(name) for name in heads]
        cells = "".join(
            f"<tr>{''.join(f'<td>{escape(_cell(row[place]))}</td>' for place in places)}</tr>" for row in shown_rows
        )
        head = "".join(f"<th>{name}</th>" for name in heads)
        rest = f"<p>{len(rows) - ROWS} more are in <code>.table</code>.</p>" if len(rows) > ROWS else ""
        notes = "".join(f"<p>{escape(text)}</p>" for text in (*self.found.notes, *([self.note] if self.note else [])))
        return (
            f"<div>{self.figure}<table><thead><tr>{head}</tr></thead><tbody>{cells}</tbody></table>{rest}{notes}</div>"
        )

    def to_text(self) -> str:
        """Return the first 20 as plain text, a line a fact."""
        lines = [one_line(self.question, 200)]
        for place, seed in enumerate(self._all()[:DRAWN], 1):
            _, key, kind, label, score, taken, why, *_ = self._row(place, seed)
            lines.append(one_line(f"{place:3} {score:6.2f} {taken or '-':9} {kind} {label} ({key}) {why}", 240))
        return "\n".join([*lines, *self.found.notes, *([self.note] if self.note else [])])

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/plain": self.to_text(), "text/html": self.to_html()}


def explain(search: Search) -> Explanation:
    """Rank the facts for a question, and say what an investigation would take and why."""
    found, ranked = retrieve(search), ranking(search)
    facts = search.reader.get_objects({*(seed.id for seed in ranked), *found.context})
    relations = search.reader.get_relations_by_id(found.relations)
    labels = {key: shown(row) for key, row in facts.items()}
    seeds = {seed.id: seed.to_dict() for seed in ranked}
    taken = {key: seed for key, seed in seeds.items() if key in {row.id for row in (*found.seeds, *found.also)}}
    why = reasons([key for key in found.context if key in facts], taken, relations, labels)
    left = {key: seed for key, seed in seeds.items() if key not in why and key in facts}
    why |= reasons(list(left), left, {}, labels)
    note = "" if search.similar or search.mode != "full" else "Only words and structure count; ws.embed() adds meaning."
    return Explanation(
        question=search.question,
        mode=search.mode,
        ranked=tuple(ranked),
        found=found,
        facts=facts,
        why=why,
        note=note,
    )


def _segments(seed: Seed) -> list[tuple[str, str, float]]:
    """Return the parts of a bar: what it stands for, its colour, its share of the score."""
    if not seed.parts:
        return [("its words", GROUPS["its words"][0], seed.score)]
    sums = ((name, color, sum(seed.parts.get(part, 0.0) for part in parts)) for name, (color, parts) in GROUPS.items())
    return [row for row in sums if row[2] > 0]


def _legend() -> list[str]:
    drawn, left = [], 10.0
    for name, (color, _) in GROUPS.items():
        drawn.append(f'<rect x="{left:.1f}" y="36" width="12" height="12" fill="{color}"/>')
        drawn.append(_text(name, left + 17, 46))
        left += 40 + 6.6 * len(name)
    return drawn


def _text(
    text: str, left: float, base: float, *, size: int = FONT, fill: str = INK["light"], weight: str = "normal"
) -> str:
    place = f'x="{left:.1f}" y="{base:.1f}" font-size="{size}" font-weight="{weight}" fill="{fill}"'
    return f"<text {place}>{escape(text)}</text>"


def _cell(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else one_line(str(value), 240)
