"""Page: an investigation as a reader sees it, as HTML or as plain text. Every fact is data, escaped where it shows."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contextmesh.investigation.guess import HEADING
from contextmesh.investigation.saved import Saved
from contextmesh.investigation.words import one_line, visible

SYNTHETIC = "Synthetic data: invented for teaching, no real people, systems or incidents."
WIDTH = 100
PATHS_SHOWN = 12  # in a page or text, which name how many there are; the table holds all
TEXT_SHOWN = 600  # characters of a fact in a page; the tables hold all of it
FOLDED = ("reasons", "path")  # what strings labels together, which may be long: all of it is there, folded up
FOLDED_SHOWN = 160  # characters of it at first

PAGE = """
<style>
.cm-inv { font-size: 13px; line-height: 1.45; max-width: 1100px; overflow-wrap: anywhere;
  color: var(--jp-content-font-color1, currentColor); }
.cm-inv .cm-q { font-size: 15px; font-weight: 600; margin: .2em 0 .6em; }
.cm-inv .cm-a { border-left: 4px solid #0072b2; padding: .3em .9em; margin: 0 0 .6em;
  background: var(--jp-layout-color2, rgba(127, 127, 127, .1)); }
.cm-inv .cm-a p { margin: .35em 0; }
.cm-inv .cm-n { border-left: 4px solid #e69f00; padding: .3em .9em; margin: .3em 0; }
.cm-inv .cm-m { color: var(--jp-content-font-color2, gray); }
.cm-inv table { border-collapse: collapse; width: 100%; margin: 0 0 .4em; table-layout: auto; }
.cm-inv table th, .cm-inv table td { text-align: left !important; vertical-align: top; white-space: normal;
  padding: .35em 1em .35em 0; min-width: 7.5em; max-width: none; unicode-bidi: plaintext;
  border-bottom: 1px solid var(--jp-border-color2, rgba(127, 127, 127, .35)); }
.cm-inv table th { font-weight: 600; }
.cm-inv summary { cursor: pointer; font-weight: 600; margin: 1em 0 .3em; }
.cm-inv td summary { font-weight: inherit; margin: 0; }
.cm-inv td details > div { margin-top: .35em; padding-left: .8em;
  border-left: 2px solid var(--jp-border-color2, rgba(127, 127, 127, .35)); }
</style>
<div class="cm-inv">
<div class="cm-q">{{ page.question }}</div>
<div class="cm-a">{% for line in answer %}<p>{{ line }}</p>{% endfor %}</div>
{% if page.is_synthetic %}<div class="cm-n">{{ synthetic }}</div>{% endif %}
{% for section in page.sections %}
<details open><summary>{{ section.title }}{{ section.count }}</summary>
{% if section.rows %}
<table><thead><tr>{% for name in section.columns %}<th scope="col">{{ name }}</th>{% endfor %}</tr></thead><tbody>
{% for row in section.rows %}
<tr>
{%- for shown, whole in cells(section, row) %}
{% if whole %}<td><details><summary dir="auto">{{ shown }}</summary><div dir="auto">{{ whole }}</div></details></td>
{%- else %}<td dir="auto">{{ shown }}</td>{% endif %}
{% endfor %}
</tr>
{% endfor %}
</tbody></table>
{% else %}<p class="cm-m">{{ section.empty }}</p>{% endif %}
</details>
{% endfor %}
{% if page.hypothesis %}
<details open><summary>{{ heading }}</summary>
<div class="cm-n">{% for line in page.hypothesis %}<p dir="auto">{{ line }}</p>{% endfor %}</div>
</details>
{% endif %}
<p class="cm-m">{{ page.run }} · {{ page.status }}</p>
</div>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One table of a page or text: what it shows, and how many rows there are in all."""

    title: str
    count: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    empty: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What there is to show of an investigation.

    Args:
        hypothesis: what is told of a model's guess, line by line; empty where none was asked for.
        run: the run's id.
    """

    question: str
    answer: str
    is_synthetic: bool
    sections: Sequence[Section]
    hypothesis: Sequence[str]
    run: str
    status: str

    def to_html(self) -> str:
        """Return the page as an HTML fragment, every fact escaped; it needs no network and no kernel."""
        import jinja2  # noqa: PLC0415 - a page is seldom what an import is for

        page = jinja2.Environment(autoescape=True, trim_blocks=True).from_string(PAGE)
        return page.render(
            page=self, answer=self.answer.splitlines(), heading=HEADING, synthetic=SYNTHETIC, cells=_cells
        ).strip()

    def to_text(self) -> str:
        """Return the page as plain text, wrapped at 100 characters."""
        lines = [*_wrapped(self.question, ""), "", *_wrapped(self.answer, "  ")]
        if self.is_synthetic:
            lines += ["", f"  [{SYNTHETIC}]"]
        for section in self.sections:
            lines += ["", f"{section.title}{section.count or f': {section.empty}'}"]
            for row in section.rows:
                lines += _listed([_short(cell) for cell in row], section.columns)
        for number, line in enumerate(self.hypothesis):
            lines += ["", HEADING] if number == 0 else []
            lines += _wrapped(line, "  ")
        return visible("\n".join([*lines, "", f"{self.run}, {self.status}"]))


def sections_of(saved: Saved) -> list[Section]:
    """Return what a run saved as the sections of a page."""
    return [
        _section("Evidence", saved.evidence, ("label", "text", "reasons", "source", "id"), "nothing matches"),
        _section("Paths", saved.paths, ("path",), "no two facts are connected", most=PATHS_SHOWN),
        _section("Tasks", saved.tasks, ("task", "status", "requires"), "not planned yet"),
        _section("Gaps", saved.noted("gaps", "gap"), ("gap", "stage"), "none"),
        _section("Warnings", saved.noted("warnings", "warning"), ("warning", "stage"), "none"),
    ]


def _section(
    title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], empty: str, most: int = 0
) -> Section:
    total = len(rows)
    kept = rows[: most or total]
    count = f" (the first {most} of {total}; inv.{title.lower()} has all)" if len(kept) < total else f" ({total})"
    cells = [[str(row[name]) for name in columns] for row in kept]
    return Section(title=title, count=count if total else "", columns=columns, rows=cells, empty=empty)


def _cells(section: Section, row: Sequence[str]) -> list[tuple[str, str]]:
    """Return for each cell what shows at once, and all of it where the rest is folded up."""
    return [
        _folded(cell) if name in FOLDED else (_short(cell), "") for name, cell in zip(section.columns, row, strict=True)
    ]


def _folded(text: str) -> tuple[str, str]:
    return (text, "") if len(text) <= FOLDED_SHOWN else (one_line(text, FOLDED_SHOWN), text)


def _short(text: str) -> str:
    return text if len(text) <= TEXT_SHOWN else f"{text[:TEXT_SHOWN]} … ({len(text):,} characters)"


def _wrapped(text: str, indent: str) -> list[str]:
    lines = []
    for part in text.splitlines() or [""]:
        lines += textwrap.wrap(part, WIDTH, initial_indent=indent, subsequent_indent=indent) or [""]
    return lines


def _listed(row: Sequence[str], columns: Sequence[str]) -> list[str]:
    first, *rest = row
    lines = textwrap.wrap(first, WIDTH, initial_indent="  • ", subsequent_indent="    ")
    for name, cell in zip(columns[1:], rest, strict=True):
        if cell and cell != first:
            lines += textwrap.wrap(f"{name}: {cell}", WIDTH, initial_indent="      ", subsequent_indent="        ")
    return lines
