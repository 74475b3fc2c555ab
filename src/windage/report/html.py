"""HTML documents that open offline: pictures inside, nothing fetched, every label escaped.

`write_page` writes a plain page of headings, paragraphs, tables and figures. Pages with a template
of their own share `environment` and `svg`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import jinja2
import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from windage.atomic_io import write_whole

__all__ = ["Section", "environment", "svg", "write_page"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: {{ width }}rem;
       padding: 0 1rem; color: #222; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
figure { margin: 0; } svg { width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .95rem; }
th, td { text-align: left; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid #ddd;
         vertical-align: top; }
.table { overflow: auto; max-height: 24rem; }
.warning { border-left: 4px solid #D55E00; padding: .2rem 1rem; background: #fdf3ec; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
{% for section in sections %}
{% if section.title %}
<h2>{{ section.title }}</h2>
{% endif %}
{% for text in section.texts %}
<p>{{ text }}</p>
{% endfor %}
{% if section.warning %}
<p class="warning"><strong>{{ section.warning[0] }}</strong> {{ section.warning[1] }}</p>
{% endif %}
{% if section.rows %}
<div class="table"><table>
{% if section.columns %}
<tr>{% for name in section.columns %}<th>{{ name }}</th>{% endfor %}</tr>
{% endif %}
{% for row in section.rows %}
<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</table></div>
{% endif %}
{% if section.picture %}
<figure role="img" aria-label="{{ section.title }}">{{ section.picture }}</figure>
{% endif %}
{% endfor %}
</body>
</html>
"""


class Section:
    """A part of a plain page.

    Parameters
    ----------
    title
        The heading; none if empty.
    texts
        Paragraphs.
    columns, rows
        A table: its header, and its cells as text.
    figure
        A picture, below all else.
    warning
        A paragraph that stands out: its first words, and the rest.
    """

    def __init__(
        self,
        title: str,
        texts: Sequence[str] = (),
        columns: Sequence[str] = (),
        rows: Sequence[Sequence[str]] = (),
        figure: Figure | None = None,
        warning: tuple[str, str] | None = None,
    ) -> None:
        self.title, self.texts, self.columns, self.rows = title, texts, columns, rows
        self.picture = svg(figure, title) if figure is not None else ""
        self.warning = warning


def write_page(path: str | Path, title: str, sections: Sequence[Section], width: int = 76) -> None:
    """Write a plain page, whole or not at all; `width` is that of its text, in rem."""
    page = environment().from_string(_PAGE).render(title=title, sections=sections, width=width)
    write_whole(path, lambda file: file.write(page.encode()), make_folder=True)


def environment(loader: jinja2.BaseLoader | None = None) -> jinja2.Environment:
    """Return a jinja2 environment that escapes labels and refuses undefined names."""
    return jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def svg(figure: Figure, name: str = "") -> Markup:
    """Return a figure as part of a page, the same bytes every time.

    Parameters
    ----------
    figure
        The figure. Labels in it are drawn as paths, so they need no font and hold no markup.
    name
        A name that no other figure of the page has: it keeps the ids inside apart.
    """
    target = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": f"windage {name}", "svg.fonttype": "path"}):
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    drawn = target.getvalue()
    return Markup(drawn[drawn.index("<svg") :])  # noqa: S704 - drawn by matplotlib
