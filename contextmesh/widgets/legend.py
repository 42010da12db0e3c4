"""Legend: what the colours of a graph mean, how much there is of each, and what of it is drawn."""

from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as widgets
from ipywidgets.widgets.widget_bool import CheckboxStyle

from contextmesh.investigation.drawing import SIGNS
from contextmesh.investigation.palette import CHANGE_COLORS, KIND_COLORS, RELATION_COLORS, color_of
from contextmesh.investigation.scene import Light, Scene
from contextmesh.widgets.closing import close_parts
from contextmesh.widgets.status import StatusLine

# A disc for a kind and a stroke for a relation type, before the words of their checkbox. A class says which colour.
STYLE = """<style>
.cm-legend .widget-checkbox span::before {content: ''; display: inline-block; vertical-align: middle;
  margin: 0 6px 2px 2px; width: 11px; height: 11px; border-radius: 50%; background: var(--cm-color);}
.cm-legend .cm-stroke span::before {width: 16px; height: 3px; border-radius: 2px;}
.cm-legend .widget-checkbox {padding-right: 6px;}
.cm-legend .widget-checkbox label {display: flex; align-items: center; cursor: pointer; width: auto;
  color: var(--jp-content-font-color1, inherit);}
.cm-legend .cm-legend-name {color: var(--jp-content-font-color2, inherit); line-height: 28px; white-space: nowrap;}
.cm-legend .cm-change {display: inline-block; margin-right: 14px; line-height: 28px; white-space: nowrap;}
.cm-legend .cm-change::before {content: ''; display: inline-block; width: 11px; height: 11px; border-radius: 50%;
  margin: 0 6px 0 2px; background: var(--cm-color);}
</style>"""


class Legend(widgets.VBox):
    """Say what each colour means, with counts; clearing a checkbox takes its kind or relation type out of the picture.

    Args:
        on_change: called when something is hidden or shown again.
        status: where to say what goes wrong.

    Attributes:
        kinds: kind -> its checkbox.
        relations: relation type -> its checkbox.
    """

    def __init__(self, *, on_change: Callable[[], None], status: StatusLine) -> None:
        self.on_change, self.status = on_change, status
        self.kinds: dict[str, widgets.Checkbox] = {}
        self.relations: dict[str, widgets.Checkbox] = {}
        self._known: dict[tuple[bool, str], widgets.Checkbox] = {}
        self._rows = [widgets.HBox(layout=_row()) for _ in range(2)]
        names = [widgets.HTML(f'<span class="cm-legend-name">{name}</span>') for name in ("Kinds", "Relations")]
        for name in names:
            name.layout.flex, name.layout.margin = "0 0 72px", "0"
        self._lines = [widgets.HBox([name, row]) for name, row in zip(names, self._rows, strict=True)]
        self._shape = widgets.Layout(width="auto", margin="0")  # of all checkboxes
        self._look = CheckboxStyle()
        self._changes = widgets.HTML()
        self._style = widgets.HTML(STYLE)
        super().__init__([self._style, *self._lines, self._changes])
        self.add_class("cm-legend")

    def __repr__(self) -> str:
        return f"<Legend: {len(self.kinds)} kinds, {len(self.relations)} relation types>"

    @property
    def hidden_kinds(self) -> frozenset[str]:
        """The kinds that are not drawn."""
        return frozenset(name for (is_kind, name), box in self._known.items() if is_kind and not box.value)

    @property
    def hidden_relations(self) -> frozenset[str]:
        """The relation types that are not drawn."""
        return frozenset(name for (is_kind, name), box in self._known.items() if not is_kind and not box.value)

    def show(self, scene: Scene, light: Light) -> None:
        """Show what is in a scene, the most frequent first; what was hidden stays so."""
        self.kinds = self._boxes(scene.kind_counts(), KIND_COLORS, is_kind=True)
        self.relations = self._boxes(scene.relation_counts(), RELATION_COLORS, is_kind=False)
        self._style.value = STYLE + self._colors()
        for line, row, boxes in zip(self._lines, self._rows, (self.kinds, self.relations), strict=True):
            row.children = [*boxes.values()]
            line.layout.display = "" if boxes else "none"
        drawn = {*scene.ids, *scene.relation_ids} if light.changes else set()
        seen = {change for key, change in light.changes.items() if key in drawn}
        marks = [
            f'<span class="cm-change" style="--cm-color: {color}">{SIGNS[change]} {change}</span>'
            for change, color in CHANGE_COLORS.items()
            if change in seen
        ]
        name = '<span class="cm-legend-name" style="display: inline-block; width: 72px">Changes</span>'
        self._changes.value = name + "".join(marks) if marks else ""

    def _boxes(self, counts: Mapping[str, int], colors: Mapping[str, str], *, is_kind: bool) -> dict[str, Any]:
        return {name: self._box(name, n, color_of(name, colors), is_kind=is_kind) for name, n in counts.items()}

    def _box(self, name: str, count: int, color: str, *, is_kind: bool) -> widgets.Checkbox:
        key = is_kind, name
        if key not in self._known:
            classes = (_named(color), *(() if is_kind else ("cm-stroke",)))
            box = widgets.Checkbox(value=True, indent=False, layout=self._shape, style=self._look, _dom_classes=classes)
            box.observe(self._on_change, "value")
            self._known[key] = box
        self._known[key].description = f"{name} {count:,}"
        return self._known[key]

    def _colors(self) -> str:
        colors = {color_of(name, KIND_COLORS) for name in self.kinds}
        colors |= {color_of(name, RELATION_COLORS) for name in self.relations}
        rules = (f".cm-legend .{_named(color)} {{--cm-color: {color};}}" for color in sorted(colors))
        return f"<style>{''.join(rules)}</style>"

    def close(self) -> None:
        """Free all that it consists of."""
        if self.comm is not None:
            self._rows[0].children = tuple(self._known.values())  # what is in no scene now, too
        close_parts(self)
        super().close()

    def _on_change(self, _change: Any) -> None:
        with self.status.catching("hiding"):
            self.on_change()


def _named(color: str) -> str:
    return f"cm-color-{color.removeprefix('#')}"


def _row() -> widgets.Layout:
    return widgets.Layout(flex_flow="row wrap", align_items="center", grid_gap="0 10px")
