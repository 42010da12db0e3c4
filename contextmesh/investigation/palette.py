"""The colours of kinds, relation types and changes: readable on light and dark paper, and by colour-blind readers."""

import hashlib
from collections.abc import Mapping
from types import MappingProxyType

Rgb = tuple[int, int, int]

# Of the paper that a picture is drawn on, as JupyterLab's two themes have it.
PAPER: Mapping[str, str] = MappingProxyType({"light": "#ffffff", "dark": "#111111"})
INK: Mapping[str, str] = MappingProxyType({"light": "#1f2328", "dark": "#e6e8eb"})
SOFT: Mapping[str, str] = MappingProxyType({"light": "#57606a", "dark": "#a3abb5"})  # ink of what matters less
# What is not lit up fades to this.
GREY: Mapping[str, str] = MappingProxyType({"light": "#d3d7dc", "dark": "#3a3f46"})

# The blue, vermilion and green of Okabe and Ito (https://jfly.uni-koeln.de/color/), and three more that keep apart from
# them, also to readers who see no red, green or blue, between the luminances that white and black paper ask for. The
# records of the machinery, which nobody looks for first, are greys.
KIND_COLORS: Mapping[str, str] = MappingProxyType(
    {
        "Agent": "#94908c",
        "AgentRun": "#8e9499",
        "Decision": "#c2187f",
        "Entity": "#0072b2",
        "Evidence": "#009e73",
        "Hypothesis": "#a27ef3",
        "Memory": "#d55e00",
        "Run": "#7a7d80",
        "Session": "#8f9296",
        "Task": "#8b5a3c",
        "Workspace": "#909090",
    }
)
RELATION_COLORS: Mapping[str, str] = MappingProxyType(
    {
        "AFFECTS": "#d55e00",
        "DEPENDS_ON": "#a27ef3",
        "GENERATED": "#909090",
        "HANDOFF_TO": "#7a7d80",
        "HAS_MEMORY": "#94908c",
        "MENTIONS": "#5b8db8",
        "OWNED_BY": "#0072b2",
        "RELATES_TO": "#8b5a3c",
        "RESOLVED_BY": "#009e73",
        "SUPPORTS": "#c2187f",
    }
)
# Lines also differ by their strokes, where they can: lengths of stroke and gap, in pixels.
DASHES: Mapping[str, str] = MappingProxyType(
    {
        "DEPENDS_ON": "7 3",
        "GENERATED": "2 3",
        "HANDOFF_TO": "7 2 2 2",
        "HAS_MEMORY": "4 3",
        "MENTIONS": "2 3",
        "RELATES_TO": "5 3",
    }
)
CHANGE_COLORS: Mapping[str, str] = MappingProxyType({"added": "#009e73", "changed": "#0072b2", "removed": "#d55e00"})
OTHERS = ("#0072b2", "#d55e00", "#009e73", "#c2187f", "#a27ef3", "#8b5a3c")  # for what the vocabulary does not know


def color_of(name: str, colors: Mapping[str, str]) -> str:
    """Return the colour of a kind or relation type; one that is unknown has a colour that follows from its name.

    Example:
        >>> color_of("Entity", KIND_COLORS), color_of("Gateway", KIND_COLORS) in OTHERS
        ('#0072b2', True)
    """
    if name in colors:
        return colors[name]
    return OTHERS[int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") % len(OTHERS)]


def to_rgb(color: str) -> Rgb:
    """Return a colour written `#rrggbb` as three numbers from 0 to 255.

    Example:
        >>> to_rgb("#d55e00")
        (213, 94, 0)
    """
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, 1 to 21, as WCAG 2.2 defines it.

    Example:
        >>> round(contrast("#000000", "#ffffff"), 3)
        21.0
    """
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    return sum(share * _linear(part / 255) for share, part in zip((0.2126, 0.7152, 0.0722), to_rgb(color), strict=True))


def _linear(share: float) -> float:
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4  # noqa: PLR2004 - sRGB's own
