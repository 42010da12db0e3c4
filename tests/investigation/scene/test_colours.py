"""Colours that stand out from the paper, and that readers of any sight tell apart."""

import itertools

import numpy as np
import pytest

from contextmesh.investigation.palette import PAPER, color_of, contrast, to_rgb
from contextmesh.investigation.scene import CHANGE_COLORS, KIND_COLORS, RELATION_COLORS
from contextmesh.investigation.vocabulary import KINDS, RELATIONS

FACTS = ("Decision", "Entity", "Evidence", "Hypothesis", "Memory", "Task")
# How a reader without one of the three cones sees linear RGB: Machado, Oliveira and Fernandes (2009), severity 1.0.
SIGHTS = {
    "all": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


@pytest.mark.parametrize("color", sorted({*KIND_COLORS.values(), *RELATION_COLORS.values(), *CHANGE_COLORS.values()}))
@pytest.mark.parametrize("paper", PAPER.values())
def test_every_colour_stands_out_from_either_paper(color, paper):
    assert contrast(color, paper) >= 3.0


def test_every_kind_and_relation_of_the_vocabulary_has_a_colour():
    assert set(KIND_COLORS) == set(KINDS)
    assert set(RELATION_COLORS) == set(RELATIONS)


def test_an_unknown_kind_has_a_colour_that_stays():
    assert color_of("Gateway", KIND_COLORS) == color_of("Gateway", KIND_COLORS)
    assert {color_of(f"Kind{n}", KIND_COLORS) for n in range(100)} <= {KIND_COLORS[kind] for kind in FACTS}


def lab(color: str, sight: object) -> np.ndarray:
    """A colour as CIELAB, D65, as a reader of this sight sees it."""
    shares = np.array(to_rgb(color)) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(sight) @ linear, 0, 1)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    xyz = np.array(to_xyz) @ seen / np.array([0.95047, 1.0, 1.08883])
    x, y, z = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * 841 / 108 + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("colors", [[KIND_COLORS[kind] for kind in FACTS], list(CHANGE_COLORS.values())])
def test_readers_of_any_sight_tell_facts_and_changes_apart(colors, sight):
    """A difference of 10 is far beyond the 2.3 that an eye just notices (Mahy, Van Eycken and Oosterlinck, 1994)."""
    seen = [lab(color, SIGHTS[sight]) for color in colors]
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2)) >= 10


def test_contrast_is_that_of_the_guidelines():
    """#767676 is the lightest grey with 4.5 : 1 on white."""
    assert contrast("#767676", "#ffffff") >= 4.5 > contrast("#777777", "#ffffff")
