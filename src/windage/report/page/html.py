"""One HTML file with everything in it: it opens from disk, asks nobody for anything, runs only us.

The policy in its head allows exactly the scripts and the style sheet written here, by their
hashes. Data are JSON in which no character can end the script they stand in; every label is
escaped where it becomes HTML, and again where plotly reads HTML in names.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from jinja2 import PackageLoader
from markupsafe import Markup

from windage.report.html import environment
from windage.report.page.chart import Chart, Table, shortened
from windage.report.page.style import THEMES, AgentStyle
from windage.report.page.verdict import Words, plain_words
from windage.study.compare import RULE

__all__ = ["Card", "EnvironmentSection", "Page", "render"]

_OWN_STYLE = re.compile(
    r"createElement\(.style.\).{0,200}?\.textContent=('(?:[^'\\]|\\.)*')", re.DOTALL
)
_LONGEST = 70  # letters of a name in a sentence
_BULK = 400  # rows of a table that are written out; a file has them all


@dataclass(frozen=True)
class Card:
    """The verdict of one setting."""

    title: str
    anchor: str
    sentences: Sequence[Words]
    evidence: Table


@dataclass(frozen=True)
class EnvironmentSection:
    """The charts of one environment."""

    anchor: str
    title: str
    lead: str
    charts: Sequence[Chart]


@dataclass(frozen=True)
class Page:
    """Everything that is on the page, in order."""

    title: str
    headline: Words
    facts: str
    remarks: Sequence[str]
    cards: Sequence[Card]
    sections: Sequence[EnvironmentSection]
    setup_words: Sequence[str]
    setup: Sequence[Table]
    numbers: Sequence[Table]
    provenance: Sequence[tuple[str, str]]
    study_file: str
    live: bool = False


def render(page: Page) -> str:
    """Return the page as one HTML document, the same bytes for the same page."""
    from plotly.offline import get_plotlyjs

    templates = environment(PackageLoader("windage.report.page"))
    templates.filters |= {
        "cell": _cell,
        "short": _short,
        "is_number": _is_number,
        "words": plain_words,
    }
    templates.tests["agent"] = lambda word: isinstance(word, AgentStyle)
    style = templates.get_template("page.css").render(themes=THEMES)
    scripts = {"plotly": get_plotlyjs(), "page": _text("page.js")}
    tables = _Tables()
    charts = {
        chart.id: [asdict(view) for view in chart.views]
        for section in page.sections
        for chart in section.charts
    }
    body = templates.get_template("page.html").render(
        page=page,
        policy=_policy(style, scripts.values(), live=page.live),
        style=Markup(style),  # noqa: S704 - our own
        scripts={name: Markup(text) for name, text in scripts.items()},  # noqa: S704
        tables=tables,
        bulk=_BULK,
        rule=RULE,
        data=lambda: _json({"charts": charts, "themes": THEMES, "tables": tables.found}),
    )
    return body + "\n"


class _Tables:
    """Gives tables their ids, and keeps what a reader may sort and download."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def __call__(self, table: Table) -> str:
        name = f"table-{len(self.found)}"
        self.found[name] = {
            "name": table.caption,
            "headers": list(table.headers),
            "rows": [[_plain(value) for value in row] for row in table.rows],
        }
        return name


def _plain(value: Any) -> Any:
    """Return a number that JSON has; NaN is none."""
    if isinstance(value, float) and value != value:
        return None
    return value


def _policy(style: str, scripts: Iterable[str], *, live: bool) -> str:
    scripts = list(scripts)
    allowed = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    sheets = [style, "", *(sheet for script in scripts for sheet in _own_styles(script))]
    styles = " ".join(f"'sha256-{_hash(sheet)}'" for sheet in sheets)
    parts = [
        "default-src 'none'",
        f"script-src {allowed}",
        f"style-src-elem {styles}",
        "style-src-attr 'unsafe-inline'",  # plotly places its words so; it can load nothing
        "img-src data: blob:",  # a chart on its way to a file
        *(["connect-src 'self'"] if live else []),
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(parts)


def _own_styles(script: str) -> list[str]:
    """Return the style sheets that a script brings with it; plotly has one for maps.

    >>> _own_styles("e=document.createElement('style');e.id='a',e.textContent='p{top:0}'")
    ['p{top:0}']
    """
    return [str(ast.literal_eval(found)) for found in _OWN_STYLE.findall(script)]


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(data: Any) -> Markup:
    r"""Return JSON that cannot end the script it stands in.

    >>> print(_json("</script><!--"))
    "\u003c/script\u003e\u003c!--"
    """
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704


def _text(name: str) -> str:
    return (files("windage.report.page") / "templates" / name).read_text("utf-8")


def _short(label: str) -> str:
    return shortened(label, _LONGEST)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: object) -> str:
    """Return a value of a table as people read it.

    >>> _cell(12345), _cell(0.123456), _cell(98765.4321), _cell(None), _cell("a"), _cell(1e-7)
    ('12,345', '0.1235', '98,765', '–', 'a', '1e-07')
    """
    if value is None or value != value:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        size = abs(value)
        text = f"{value:,.0f}" if size >= 10_000 else f"{value:.4g}"
        return text.replace("-", "\u2212") if size >= 1e-4 else f"{value:.4g}"
    return str(value)
