"""Read Markdown into plain text blocks with line numbers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, reference
from markdown_it.tree import SyntaxTreeNode

_NESTING = 40
_HEADING = 100
_CONTAINERS = {"blockquote_open", "list_item_open"}
_NOTE = re.compile(r"^\[\^[\w-]+\]:\s*", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A heading, a paragraph, a whole top-level list item, a table row, a footnote or a comment."""

    line: int
    kind: str
    text: str
    level: int = 0
    heads: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    written_cells: int = 0
    group: str = ""


def _reference(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001  markdown-it calls it so
    """Leave footnotes to the paragraph rule: `[^1]: word` would vanish as a link's definition."""
    is_footnote = state.src.startswith("[^", state.bMarks[start] + state.tShift[start])
    return not is_footnote and reference(state, start, end, silent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The blocks under one heading; `name` is `title`, a known section's name, or empty."""

    name: str
    heading: str
    line: int
    level: int
    blocks: list[Block] = field(default_factory=list)


def fold(text: str) -> str:
    """Put text on one line, with single spaces."""
    return " ".join(text.split())


_MARKDOWN = MarkdownIt("commonmark", {"maxNesting": _NESTING}).enable("table")
_MARKDOWN.block.ruler.at("reference", _reference)


def read_blocks(text: str) -> list[Block]:
    """Read Markdown into blocks of plain text, in order.

    Args:
        text: The Markdown; line ends of any kind, a byte order mark and NUL characters are fine.

    Returns:
        Blocks of kind `heading`, `text` (a paragraph, a code block or a top-level list item with all below it), `row`
        (of a table), `note` (a footnote's text), `comment` (HTML) or `lost` (what is nested too deeply).

    Raises:
        RecursionError: Inline markup is nested too deeply.
    """
    source = re.sub(r"\r\n?", "\n", text.removeprefix("\ufeff")).encode("utf-8", "replace").decode("utf-8")
    tokens = _MARKDOWN.parse(source)
    blocks = list(_blocks(SyntaxTreeNode(tokens), source.split("\n")))
    deep = (token for token in tokens if token.level >= _NESTING - 1 and token.type in _CONTAINERS)
    if (deepest := next(deep, None)) and deepest.map:
        reason = f"nested more than {_NESTING} levels deep; what lies deeper was not read"
        blocks.append(Block(line=deepest.map[0] + 1, kind="lost", text=reason))
    return blocks


def split_sections(
    blocks: Sequence[Block], names: Mapping[str, set[str]]
) -> tuple[list[Section], list[tuple[int, str]]]:
    """Split blocks at their headings; the first heading is the title unless it names a section.

    A heading of an unknown name starts a section of its own, except below the level of a known section: there it is a
    group of that section's blocks.

    Args:
        blocks: What `read_blocks` returned.
        names: For each section's name the headings that it goes by, in lower case.

    Returns:
        The sections, and line and reason of every block that belongs to none.
    """
    sections, skipped = list[Section](), list[tuple[int, str]]()
    group = ""
    for block in blocks:
        name = section_name(block.text, names) if block.kind == "heading" else ""
        last = sections[-1] if sections else None
        if block.kind in {"lost", "comment"}:
            skipped.append((block.line, block.text if block.kind == "lost" else "HTML comment, not read"))
        elif block.kind != "heading" and not last:
            skipped.append((block.line, "text before the first heading, not read"))
        elif block.kind != "heading" and last:
            last.blocks.append(replace(block, group=group))
        elif name or not last or last.name == "title" or block.level <= last.level:
            known = name or ("" if last else "title")
            sections.append(Section(name=known, heading=block.text, line=block.line, level=block.level))
            group = ""
        else:
            group = block.text
            last.blocks.append(block)
    return sections, skipped


def section_name(heading: str, names: Mapping[str, set[str]]) -> str:
    """Name the section that a heading opens, whatever its case, marks and brackets; empty for an unknown one."""
    if len(heading) > _HEADING:
        return ""
    words = fold(re.sub(r"\(.*\)|[^\w\s]", " ", heading)).casefold()
    return next((name for name, headings in names.items() if words in headings), "")


def _blocks(node: SyntaxTreeNode, lines: Sequence[str]) -> Iterator[Block]:
    for child in node.children:
        line = child.map[0] + 1 if child.map else 1
        if child.type == "heading":
            yield Block(line=line, kind="heading", text=_text(child), level=int(child.tag[1]))
        elif child.type == "table":
            yield from _rows(child, lines)
        elif child.type == "blockquote":
            yield from _blocks(child, lines)
        elif child.type == "paragraph":
            yield from _paragraph(child, line)
        elif child.type == "html_block" and child.content.lstrip().startswith("<!--"):
            yield Block(line=line, kind="comment", text=child.content)
        else:
            for part in child.children if child.type.endswith("_list") else [child]:
                if text := _text(part):
                    yield Block(line=part.map[0] + 1 if part.map else line, kind="text", text=text)


def _rows(table: SyntaxTreeNode, lines: Sequence[str]) -> Iterator[Block]:
    head, *bodies = table.children
    heads = tuple(_text(cell) for cell in head.children[0].children)
    for row in [row for body in bodies for row in body.children]:
        cells = tuple(_text(cell) for cell in row.children)
        line = row.map[0] if row.map else 0
        raw = lines[line].lstrip("> \t").rstrip()
        parts = re.split(r"(?<!\\)\|", raw)
        count = len(parts[raw.startswith("|") : len(parts) - (parts[-1] == "")])
        pairs = [f"{name}: {cell}" if name else cell for name, cell in zip(heads, cells, strict=True) if cell]
        text = "; ".join(pairs) if count == len(heads) else fold(raw.strip("|"))
        yield Block(line=line + 1, kind="row", text=text, heads=heads, cells=cells, written_cells=count)


def _paragraph(node: SyntaxTreeNode, line: int) -> Iterator[Block]:
    raw = _inline(node.children[0]) if node.children else ""
    first = _NOTE.search(raw)
    if text := fold(raw[: first.start()] if first else raw):
        yield Block(line=line, kind="text", text=text)
    for note in _NOTE.split(raw)[1:]:
        yield Block(line=line, kind="note", text=fold(note))


def _text(node: SyntaxTreeNode) -> str:
    """All text under a node as one; nested list items follow their parent after a dash."""
    if node.type == "inline":
        return fold(_inline(node))
    if not node.children:
        code = node.content if node.type in {"fence", "code_block", "html_block"} else ""
        return code.strip("\n") if code.strip() else ""
    dash = "– " if node.type.endswith("_list") else ""  # noqa: RUF001  a dash is meant
    return " ".join(f"{dash}{text}" for text in map(_text, node.children) if text)


def _inline(node: SyntaxTreeNode) -> str:
    if node.type in {"softbreak", "hardbreak"}:
        return "\n"
    if node.type == "text":
        return re.sub(r"\[\^[\w-]+\](?!:)", "", node.content)
    if node.type == "html_inline":
        return re.sub(r"(?is)^<br\s*/?>$|^<!--.*", " ", node.content)
    return "".join(map(_inline, node.children)) if node.children else node.content if node.type == "code_inline" else ""
