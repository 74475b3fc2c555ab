"""Colours of agents: no two alike, for any eye."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from windage.report.page.chart import THEMES, styles_of

# What dichromats see of linear RGB (Machado, Oliveira, Fernandes 2009, severity 1).
EYES = {
    "all cones": np.eye(3),
    "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no blue": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TO_XYZ = np.array([[0.412, 0.358, 0.180], [0.213, 0.715, 0.072], [0.019, 0.119, 0.950]])
NOTICED = 12  # in CIELAB; about 2 is the least that is seen side by side


def lab(colour, eye):
    parts = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(np.array(EYES[eye]) @ linear, 0, 1) / TO_XYZ.sum(axis=1)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_are_told_apart(theme, eye):
    tokens = [
        style.colour[1:] for style in styles_of([f"{k}" for k in range(7)], ["oracle"], ["r"])
    ]
    assert len(set(tokens)) == 9
    colours = [THEMES[theme][token] for token in tokens]
    for one, other in itertools.combinations(colours, 2):
        assert np.linalg.norm(lab(one, eye) - lab(other, eye)) > NOTICED, (one, other)


def test_markers_tell_apart_what_shares_a_colour():
    styles = styles_of([f"{k}" for k in range(12)], [], [])
    assert len({(style.colour, style.marker) for style in styles}) == 12
