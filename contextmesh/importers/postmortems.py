"""Read Markdown postmortems into facts: text in, facts out, no database.

A postmortem has a title and sections: Summary, Timeline (a table of times and events), Contributing Factors, Lessons
Learned, Action Items, Stats (`Category`, `Time to detection`, `Time to recovery`), Attendees. The incident, its
lessons, its action items and the systems it affects become entities; timeline rows and factors become evidence with
file and line. What is not understood is named in `Reading.skipped`; only Attendees, which lists people, is left out on
purpose.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from contextmesh.errors import ImportFileError
from contextmesh.importers.markdown import Block, Section, fold, read_blocks, section_name, split_sections
from contextmesh.importers.times import When, read_minutes, read_time, zone_in, zone_stated
from contextmesh.investigation.facts import Fact, Link, Reading, Skipped

_SECTIONS = {
    "summary": {"summary"},
    "timeline": {"timeline"},
    "factor": {"contributing factors", "contributing factor"},
    "lesson": {"lessons learned", "lessons learnt", "lessons"},
    "action": {"action items", "action item", "actions"},
    "attendees": {"attendees", "atendees"},
    "stats": {"stats", "statistics"},
}
_EXPECTED = "Summary, Timeline, Contributing Factors, Lessons Learned, Action Items, Attendees or Stats"
_DURATIONS = ("time_to_detection", "time_to_recovery")
_STATS = ("category", *_DURATIONS)
_STAT_NAME = re.compile(r"(?i)\s(?=(?:category|time to (?:detection|recovery))\s*:)")
_SLUG = 100
_PARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "timeline": ("Evidence", {"evidence_type": "timeline"}),
    "factor": ("Evidence", {"evidence_type": "factor"}),
    "lesson": ("Entity", {"entity_type": "lesson"}),
    "action": ("Entity", {"entity_type": "action_item"}),
}

# Well-known products; `_WORDS` are English words too and count only with their capital.
# fmt: off
_PRODUCTS = (
    "ADFS", "ADSync", "ALB", "Alcide", "CloudWatch", "Consul", "containerd", "CoreDNS", "Docker", "EC2", "EKS",
    "Elasticsearch", "etcd", "Fluentd", "Flux", "Grafana", "HAProxy", "Helm", "Istio", "Jenkins", "Kafka", "KIAM",
    "Kubernetes", "Kyverno", "Log4j", "Loki", "Memcached", "MongoDB", "MySQL", "nginx", "Okta", "OpenSearch",
    "PostgreSQL", "Prometheus", "RabbitMQ", "Redis", "Terraform", "Traefik", "Vault", "VPC CNI",
)
_ALIASES = {
    "ALB": ["Application Load Balancer"], "CloudWatch": ["CWL"], "Kubernetes": ["K8s"], "Log4j": ["Log4Shell"],
    "PostgreSQL": ["Postgres"], "VPC CNI": ["vpc-cni"],
}
# fmt: on
_WORDS = {"Consul", "Flux", "Helm", "Vault"}
_NOT_A_SYSTEM = re.compile(r"(?i)\bincident\b|^(?:n/?a|none|tbd|xxx|unknown)$")
_CODE = re.compile(r"([A-Z]{2,10}-?[0-9]+(?:-[0-9]+)*)(?=[\s_]|$)")
_TIME_HEAD = re.compile(r"(?i)\b(?:time|date|when)\b")
_PLACEHOLDER = re.compile(r"[0-9]{0,2}(?:xx|yy)", re.IGNORECASE)


def read_postmortem(text: str, file: str) -> Reading:
    r"""Read one postmortem into facts.

    Args:
        text: The Markdown text.
        file: Its file name; a folder in front is dropped. A leading code such as `PM2019-009` becomes the id.

    Returns:
        The incident first, then timeline rows, factors, lessons, action items, systems, each in the file's order. A
        template, or a text without any known section, gives a Reading without facts that says so in `skipped`.

    Raises:
        ImportFileError: The text is nested too deeply to be read.

    Example:
        >>> reading = read_postmortem("# Cache full\n## Action Items\n- Add an alert", "INC-7.md")
        >>> [(fact.id.split(".")[0], fact.data["label"]) for fact in reading.facts]
        [('inc-7', 'INC-7 Cache full'), ('inc-7', 'Add an alert')]
    """
    name = re.split(r"[\\/]", file)[-1].encode("utf-8", "replace").decode("utf-8")
    try:
        blocks = read_blocks(text)
    except RecursionError as error:
        message = f"'{name}' is nested too deeply to be read; expected headings, paragraphs, lists and tables"
        raise ImportFileError(message) from error
    sections, skipped = split_sections(blocks, _SECTIONS)
    if not any(section.name in _SECTIONS for section in sections):
        reason = f"not a postmortem; expected a title and at least one section of {_EXPECTED}"
        return _nothing(name, 1, reason)
    if _is_template(name, sections):
        return _nothing(name, 1, "template, not an incident")
    return _Draft(name, sections, skipped).reading()


def read_postmortems(paths: Iterable[str | Path]) -> list[Reading]:
    """Read postmortem files, and folders of them.

    Args:
        paths: Files or folders. Of a folder, sorted by name: its `*.md`, and files without an ending that hold a known
            section.

    Returns:
        One Reading a file. A second file with the same incident id gives a Reading without facts that names the first.

    Raises:
        ImportFileError: A file or folder cannot be opened, is not UTF-8, or a folder holds no postmortem.
    """
    readings, taken = [], dict[str, str]()
    files = [file for path in ([paths] if isinstance(paths, (str, Path)) else paths) for file in _files(Path(path))]
    for file in dict.fromkeys(files):
        reading = read_postmortem(_text_of(file), file.name)
        if reading.source in taken:
            first = taken[reading.source]
            reason = f"incident id '{reading.source}' was already read from '{first}'; rename one of them"
            reading = _nothing(file.name, 1, reason)
        elif reading.source:
            taken[reading.source] = str(file)
        readings.append(reading)
    return readings


def _nothing(file: str, line: int, reason: str) -> Reading:
    return Reading(facts=(), links=(), skipped=(Skipped(file=file, line=line, reason=reason),), source="")


# Files.


def _files(path: Path) -> list[Path]:
    try:
        if not path.is_dir():
            return [path]
        entries = sorted(entry for entry in path.iterdir() if entry.is_file() and not entry.name.startswith("."))
        found = [entry for entry in entries if entry.suffix.lower() == ".md" or _looks_like_one(entry)]
    except OSError as error:
        raise ImportFileError(
            f"cannot read folder '{path}': {error.strerror}; check the path and its rights"
        ) from error
    if not found:
        raise ImportFileError(f"no postmortems in folder '{path}'; expected *.md files")
    return found


def _looks_like_one(path: Path) -> bool:
    """Tell a postmortem without an ending from a LICENSE; a title may hold a dot, an ending never holds a space."""
    if path.suffix and " " not in path.suffix:
        return False
    text = path.read_bytes().decode("utf-8-sig", errors="replace")
    return any(section_name(line.lstrip("#"), _SECTIONS) for line in text.splitlines() if line.startswith("#"))


def _text_of(path: Path) -> str:
    try:
        content = path.read_bytes()
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ImportFileError(
            f"'{path}', line {line}: not UTF-8; save the file as UTF-8 and import it again"
        ) from error
    except OSError as error:
        raise ImportFileError(f"cannot read '{path}': {error.strerror}; check the path and its rights") from error
    except ValueError as error:
        raise ImportFileError(f"cannot read {str(path)!r}: {error}") from error


def _is_template(file: str, sections: Sequence[Section]) -> bool:
    """Tell the blank form by two of its three marks, since a real postmortem may keep one."""
    rows = (block for section in sections for block in section.blocks if block.kind == "row")
    marks = [
        "yyyy" in file.casefold(),
        sections[0].heading.casefold() == "incident title",
        any(_PLACEHOLDER.match(row.cells[0]) for row in rows),
    ]
    return sum(marks) > 1


class _Draft:
    """The facts, links and skipped parts of one postmortem while its sections are read."""

    def __init__(self, file: str, sections: Sequence[Section], skipped: Iterable[tuple[int, str]]) -> None:
        stem = re.sub(r"(?i)\.(md|markdown)$", "", file)
        code = _CODE.match(stem)
        title = sections[0].heading if sections[0].name == "title" else ""
        self.file = file
        self.code = code[1] if code else ""
        self.title = title or stem[len(self.code) :].strip(" -_") or stem
        self.line = sections[0].line
        self.incident = _slug(self.code or stem)
        self.facts: dict[str, Fact] = {}
        self.links: list[Link] = []
        self.seen = Counter[str]()
        self.skipped = [Skipped(file=file, line=line, reason=reason) for line, reason in skipped]
        self.stats: dict[str, Any] = dict.fromkeys([*_STATS, *(f"{name}_minutes" for name in _DURATIONS)])
        self.notes: list[str] = []
        self.summary: list[str] = []
        self.zone: str | None = None
        self.times: list[datetime] = []
        for section in sections:
            self.read(section)

    def skip(self, line: int, reason: str) -> None:
        self.skipped.append(Skipped(file=self.file, line=line, reason=reason))

    def read(self, section: Section) -> None:
        blocks = [block for block in section.blocks if block.kind != "note"]
        if section.name in {"title", "summary"}:
            self.summary += [block.text for block in blocks]
        elif section.name == "timeline":
            self.read_timeline(section, blocks)
        elif section.name == "stats":
            for block in blocks:
                self.read_stat(block)
        elif section.name in _PARTS:
            for block in blocks:
                if block.kind != "heading":
                    self.add_part(section.name, block)
        elif blocks and not section.name:
            self.skip(section.line, f"section '{_label(section.heading)}' is not known, not read; expected {_EXPECTED}")
        self.notes += [block.text for block in section.blocks if block.kind == "note"]

    def add_part(
        self, name: str, block: Block, *, text: str = "", written: str = "", more: dict[str, Any] | None = None
    ) -> None:
        text = text or block.text
        kind, own = _PARTS[name]
        first = f"{self.incident}.{name}.{_digest(text, written)}"
        self.seen[first] += 1
        part = first if self.seen[first] == 1 else f"{first}-{self.seen[first]}"
        group = {"heading": block.group} if block.group else {}
        where = {"incident": self.incident, "file": self.file, "line": block.line}
        about = {"label": _label(text), "text": text, "source": "postmortem"}
        self.facts[part] = Fact(id=part, kind=kind, data=own | about | where | group | (more or {}))
        ends = (self.incident, "RESOLVED_BY", part) if name == "lesson" else (part, "RELATES_TO", self.incident)
        self.links.append(Link(source=ends[0], type=ends[1], target=ends[2]))

    def read_timeline(self, section: Section, blocks: Sequence[Block]) -> None:
        stated = _zone_of(blocks)
        self.zone, day = self.zone or stated, None
        start = len(self.times)
        for block in blocks:
            if block.kind == "row":
                day = self.read_row(block, stated, day)
            elif block.kind == "text" and (rest := zone_stated(block.text)[1]):
                self.skip(block.line, f"text outside the timeline's table, not read: '{_label(rest)}'")
        if any(moment.tzinfo is None for moment in self.times[start:]):
            self.skip(section.line, "no time zone stated; times are kept without one")

    def read_row(self, block: Block, stated: str | None, day: date | None) -> date | None:
        """Read one row and return its date, which a row without a date inherits."""
        written, event = _time_and_event(block)
        if not block.text:
            return day
        when = read_time(written, zone_in(" ".join(block.heads)) or stated, day)
        problem = _row_problem(block, event)
        if problem or when.problem:
            self.skip(block.line, problem or f"time '{_label(written)}' {when.problem}")
        if not problem:
            self.times += [when.time] if when.time else []
            self.add_part("timeline", block, text=event, written=written, more=_times(written, when))
        return when.time.date() if when.time else None

    def read_stat(self, block: Block) -> None:
        is_pair = block.kind == "row" and len(block.cells) == len(("name", "value"))
        for text in [": ".join(block.cells)] if is_pair else _STAT_NAME.split(block.text):
            name, _, value = text.partition(":")
            key, value = fold(name).casefold().replace(" ", "_"), value.strip()
            if key not in _STATS or self.stats[key] is not None:
                self.notes.append(text)
                continue
            self.stats[key] = value
            if key in _DURATIONS and (minutes := read_minutes(value)) is not None:
                self.stats[f"{key}_minutes"] = minutes
            elif key in _DURATIONS:
                self.skip(block.line, f"{fold(name).lower()} '{_label(value)}' is not a duration; kept as written")

    def reading(self) -> Reading:
        text = "\n\n".join(part for part in [self.title, *self.summary] if part)
        systems = _systems(self.stats["category"] or "", text)
        for system in systems:
            self.facts[system.id] = system
            self.links.append(Link(source=self.incident, type="AFFECTS", target=system.id))
        begin = min(
            self.times, key=lambda moment: moment if moment.tzinfo else moment.replace(tzinfo=UTC), default=None
        )
        label = _label(f"{self.code} {self.title}".strip(), 160)
        about = {"entity_type": "incident", "label": label, "text": text, "aliases": [self.code] if self.code else []}
        where = {"source": "postmortem", "file": self.file, "line": self.line}
        times = {"started_at": begin and begin.isoformat(), "zone": self.zone}
        notes = {"notes": self.notes} if self.notes else {}
        incident = Fact(id=self.incident, kind="Entity", data=about | where | self.stats | times | notes)
        skipped = tuple(sorted(self.skipped, key=lambda part: part.line))
        facts = (incident, *self.facts.values())
        return Reading(facts=facts, links=tuple(self.links), skipped=skipped, source=self.incident)


def _time_and_event(row: Block) -> tuple[str, str]:
    """Join the cells under heads such as `Date` and `Time`, and the others; the first is the time if none says so."""
    heads = [index for index, head in enumerate(row.heads) if _TIME_HEAD.search(head)] or [0]
    times = [cell for index, cell in enumerate(row.cells) if index in heads and cell]
    events = [cell for index, cell in enumerate(row.cells) if index not in heads and cell]
    return " ".join(times), " – ".join(events)  # noqa: RUF001  a dash is meant


def _times(written: str, when: When) -> dict[str, Any]:
    data: dict[str, Any] = {"time": when.time and when.time.isoformat(), "time_written": written}
    data |= {"precision": when.precision, "approximate": when.approximate, "zone": when.zone}
    optional = {"time_end": when.end and when.end.isoformat(), "zone_note": when.note}
    return data | {name: value for name, value in optional.items() if value}


def _row_problem(block: Block, event: str) -> str:
    if block.written_cells != len(block.heads):
        return f"row of {block.written_cells} cell(s), expected {len(block.heads)}; not read: '{_label(block.text)}'"
    if not event:
        return "row without an event, not read"
    if event.casefold().strip(" .") == "short event description":
        return "placeholder left over from the template, not an event"
    return ""


def _systems(category: str, text: str) -> list[Fact]:
    """Find what is affected: products named in category, title or summary, and any other category as it stands."""
    found = [name for name in _PRODUCTS if _names(name, f"{category}\n{text}")]
    is_product = any(_names(name, category) for name in _PRODUCTS)
    if re.search(r"\w{2}", category) and not is_product and not _NOT_A_SYSTEM.search(category):
        found.append(category)
    return [_system(name) for name in found]


def _names(product: str, text: str) -> bool:
    words = "|".join(re.escape(word) for word in [product, *_ALIASES.get(product, [])])
    return bool(re.search(rf"(?<!\w)(?:{words})s?(?!\w)", text, 0 if product in _WORDS else re.IGNORECASE))


def _system(name: str) -> Fact:
    label, aliases = _label(name), _ALIASES.get(name, [])
    data = {"entity_type": "system", "label": label, "text": name, "aliases": list(aliases), "source": "postmortem"}
    return Fact(id=f"system.{_slug(name)}", kind="Entity", data=data)


def _zone_of(blocks: Iterable[Block]) -> str | None:
    stated = (zone_in(" ".join(b.heads)) if b.kind == "row" else zone_stated(b.text)[0] for b in blocks)
    return next(filter(None, stated), None)


# Values.


def _slug(text: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", ascii_only).strip("-")
    return slug if 0 < len(slug) <= _SLUG else f"{slug[: _SLUG - 11]}-{_digest(text)}".strip("-")


def _digest(text: str, written: str = "") -> str:
    normal = "\n".join(fold(unicodedata.normalize("NFC", part)) for part in [text, written] if part)
    return hashlib.sha256(normal.encode()).hexdigest()[:10]


def _label(text: str, length: int = 80) -> str:
    line = fold(text)
    if len(line) <= length:
        return line
    cut = line[:length]
    return (cut[: cut.rfind(" ")] if " " in cut else cut[:-1]).rstrip(" ,;:–-") + "…"  # noqa: RUF001  a dash is meant
