"""Reading figures: what they name, and whether all of it stays on the page."""

from __future__ import annotations

from matplotlib.backends.backend_agg import FigureCanvasAgg

import windage as wd


def random_run(model, seed=0, record="full"):
    agent = wd.agents.make("random", model.space, horizon=model.horizon, seed=seed)
    return wd.run(model, agent, seed=seed, record=record)


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def notes(figure):
    return [[text.get_text() for text in axes.texts] for axes in figure.axes]


def drawn(figure):
    """The renderer of a figure that has been laid out."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas.get_renderer()


def assert_on_the_page(figure):
    """Nothing is cut off, no legend covers data or another one, and the data have room."""
    renderer = drawn(figure)
    page = figure.bbox
    assert page.width == 1200
    legends = [axes.get_legend() for axes in figure.axes]
    boxes = [legend.get_window_extent(renderer) for legend in legends if legend]
    boxes = [box for box in boxes if box.width > 10]  # not those of empty legends
    panels = [axes.get_window_extent(renderer) for axes in figure.axes]
    for box in boxes:
        assert box.x0 > 0
        assert box.y0 > 0
        assert box.x1 < page.width
        assert not any(box.overlaps(panel) for panel in panels), "a legend covers data"
        assert sum(box.overlaps(other) for other in boxes) == 1, "legends overlap"
    assert min(panel.width for panel in panels) > 500, "names leave no room for the data"
    for axes in figure.axes:
        tight = axes.get_tightbbox(renderer)
        assert tight.x0 >= 0
        assert tight.y0 >= 0
        assert tight.x1 <= page.width
        assert tight.y1 <= page.height
