"""A live agent on one HTML page that opens offline: pictures inside, nothing fetched."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import jinja2
import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from windage.atomic_io import write_whole

__all__ = ["Section", "write_page"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem;
       color: #222; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
svg { width: 100%; height: auto; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .2rem 1rem .2rem 0;
       border-bottom: 1px solid #ddd; vertical-align: top; }
.wide { overflow-x: auto; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
{% for section in sections %}
{% if section.title %}<h2>{{ section.title }}</h2>{% endif %}
{% for text in section.texts %}<p>{{ text }}</p>
{% endfor %}
{% if section.rows %}<div class="wide"><table>
{% if section.columns %}<tr>{% for name in section.columns %}<th>{{ name }}</th>{% endfor %}</tr>
{% endif %}
{% for row in section.rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</table></div>{% endif %}
{% if section.picture %}{{ section.picture }}{% endif %}
{% endfor %}
</body>
</html>
"""


class Section:
    """A part of a page: a heading, paragraphs, a table, a picture."""

    def __init__(
        self,
        title: str,
        texts: Sequence[str] = (),
        columns: Sequence[str] = (),
        rows: Sequence[Sequence[str]] = (),
        figure: Figure | None = None,
    ) -> None:
        self.title, self.texts, self.columns, self.rows = title, texts, columns, rows
        self.picture = _svg(figure) if figure is not None else ""


def write_page(path: Path, title: str, sections: Sequence[Section]) -> None:
    """Write a page, whole or not at all."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    text = environment.from_string(_PAGE).render(title=title, sections=sections)
    write_whole(path, lambda file: file.write(text.encode()), make_folder=True)


def _svg(figure: Figure) -> Markup:
    """Return a figure as part of a page; names in it are text, already escaped by matplotlib."""
    target = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "windage", "svg.fonttype": "none"}):
        figure.savefig(target, format="svg", metadata={"Date": None})
    drawn = target.getvalue()
    return Markup(drawn[drawn.index("<svg") :])  # noqa: S704 - our own drawing
