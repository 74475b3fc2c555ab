"""The report of a study: one HTML page with a verdict, charts, all numbers and how to make them.

`make_report` gathers a folder of results, `compose` puts the page together, `render` writes it. The
provenance names the study as a file to run again, its hashes, versions and seeds. The page opens
from disk, asks nobody for anything and runs only our scripts: the policy in its head allows exactly
the scripts and the style sheet written here, by their hashes. Data are JSON in which no character
can end the script they stand in; every label is escaped where it becomes HTML, and again where
plotly reads HTML in names.
"""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import PackageLoader
from markupsafe import Markup

from windage.atomic_io import write_whole
from windage.errors import StateError
from windage.report import html
from windage.report.page import tables
from windage.report.page.chart import THEMES, AgentStyle, Chart, Table, shortened
from windage.report.page.charts import charts_of
from windage.report.page.data import Asked, Material, Setting, gather
from windage.report.page.verdict import Words, evidence, headline, named, plain_words, verdict
from windage.study.compare import RULE, Plan
from windage.study.store import Manifest, Store, load_oracles, load_results

__all__ = [
    "Card",
    "EnvironmentSection",
    "Page",
    "Report",
    "compose",
    "make_report",
    "render",
    "study_text",
    "write_report",
]


@dataclass(frozen=True, eq=False)
class Report:
    """A page and its data.

    Attributes
    ----------
    page
        Its words, charts and tables.
    material
        The runs behind it.
    manifest
        The study they belong to.
    """

    page: Page
    material: Material
    manifest: Manifest

    @property
    def done(self) -> int:
        """How many runs are in."""
        return self.material.results.frame.height

    @property
    def wanted(self) -> int:
        """How many runs the study asks for."""
        return len(self.manifest.runs)

    @property
    def verdict(self) -> list[str]:
        """The headline, and then the sentences of every environment."""
        cards = [
            f"{card.title}: {' '.join(plain_words(words) for words in card.sentences)}"
            for card in self.page.cards
        ]
        return [plain_words(self.page.headline), *cards]

    def html(self) -> str:
        """Return the page as one HTML document."""
        return render(self.page)


def make_report(
    folder: str | Path,
    *,
    live: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Gather what a folder of results says.

    Parameters
    ----------
    folder
        What `windage run -o` wrote; runs may be missing, and the page says how many.
    live
        Whether the page is to follow the study, as `windage watch` serves it.
    progress
        Called with what is about to be done.

    Raises
    ------
    StateError
        The folder holds no study, or a damaged file, or no run yet.
    """
    say = progress or _quiet
    say("reading the results")
    store = Store.found(folder)
    manifest = store.manifest()
    frame = load_results(folder, unfinished=True)
    if frame.height == 0 and not live:
        raise StateError(
            "no run is in it yet",
            field=str(folder),
            fix="let `windage run` finish some runs, or follow it with `windage watch`",
        )
    say("comparing the agents")
    asked = Asked(manifest.runs, Plan.of(manifest.study), store.failed())
    material = gather(frame, load_oracles(folder), asked)
    wanted = len(manifest.runs)
    page = compose(
        material,
        title=manifest.name,
        provenance=_provenance(store, manifest, complete=frame.height == wanted),
        study_file=study_text(manifest.study),
        live=live,
        progress=progress,
    )
    return Report(page, material, manifest)


def write_report(
    folder: str | Path, target: str | Path, *, progress: Callable[[str], None] | None = None
) -> Report:
    """Write the page of a study to one HTML file, whole or not at all; returns what it says.

    Examples
    --------
    >>> import tempfile, windage as wd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = wd.Study([{"id": "bandit"}], [{"id": "random"}], horizon=100, seeds=2)
    ...     done = study.run(f"{folder}/results", workers=1)
    ...     report = write_report(f"{folder}/results", f"{folder}/report.html")
    >>> report.verdict[0]
    'No learner took part: these are yardsticks only.'
    """
    report = make_report(folder, progress=progress)
    (progress or _quiet)("writing the page")
    data = report.html().encode()
    write_whole(target, lambda file: file.write(data), make_folder=True)
    return report


def _quiet(stage: str) -> None:
    del stage


def compose(
    material: Material,
    *,
    title: str,
    provenance: Sequence[tuple[str, str]],
    study_file: str,
    live: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Page:
    """Return the page of a study.

    Parameters
    ----------
    material
        What was found in the results folder.
    title, provenance, study_file
        The study's name, where its numbers come from, and the study itself as text.
    live
        Whether the page is served while the study runs.
    progress
        Called with what is about to be drawn.
    """
    results = material.results
    sections = []
    for place, environment in enumerate(results.environments):
        if progress:
            progress(f"charts of {environment}")
        anchor = f"environment-{place + 1}"
        setting = results.longest(environment)
        sections.append(
            EnvironmentSection(
                anchor,
                environment,
                _lead(material, setting),
                charts_of(material, setting, anchor),
            )
        )
    judged = material.judged
    missing = material.missing
    return Page(
        title=title,
        headline=headline(judged, material.styles, material.nowhere),
        facts=_facts(material),
        remarks=_remarks(material),
        cards=[
            Card(
                comparison.setting.title,
                f"environment-{place + 1}",
                verdict(
                    comparison,
                    material.styles,
                    missing.get((comparison.setting.environment, comparison.setting.horizon), []),
                ),
                evidence(comparison),
            )
            for place, comparison in enumerate(judged)
        ],
        sections=sections,
        setup_words=tables.setup_words(material),
        setup=[tables.agents_table(material), tables.environments_table(material)],
        numbers=[tables.numbers_table(material), tables.runs_table(material)],
        provenance=provenance,
        study_file=study_file,
        live=live,
        rule=material.asked.plan.rule,
    )


def _lead(material: Material, setting: Setting) -> str:
    results = material.results
    cells = results.cells(setting)
    horizons = sorted(s.horizon for s in results.settings if s.environment == setting.environment)
    said = (
        f"{setting.environment_id}, T = {setting.horizon:,}, {len(cells)} "
        f"agent{'s' if len(cells) > 1 else ''} on {max(cell.n for cell in cells)} seed"
        f"{'s' if max(cell.n for cell in cells) > 1 else ''}."
    )
    if len(horizons) > 1:
        others = ", ".join(f"{T:,}" for T in horizons[:-1])
        said += f" Charts show the longest horizon; T = {others} are in the table of all numbers."
    return said


def _facts(material: Material) -> str:
    results = material.results
    learners = sum(agent.kind == "learner" for agent in results.agents)
    others = len(results.agents) - learners
    parts = [
        _count(learners, "learner") + (f" and {_count(others, 'yardstick')}" if others else ""),
        _count(len(results.environments), "environment"),
        _count(results.frame["seed"].n_unique(), "seed"),
        _count(results.frame.height, "run"),
        f"{int(results.frame['steps'].sum()):,} steps",
    ]
    return " · ".join(parts)


def _remarks(material: Material) -> list[str]:
    """Return what to know before anything else: what is missing, what was picked where."""
    remarks = []
    done, wanted = material.results.frame.height, len(material.asked.runs)
    if done < wanted:
        said = (
            f"{done:,} of {wanted:,} runs are in: numbers will change, and agents are compared on "
            "the seeds that both have."
        )
        if material.nowhere:
            said += f" Without a finished run so far: {plain_words(named(material.nowhere))}."
        known = {(setting.environment, setting.horizon) for setting in material.results.settings}
        empty = [f"{e}, T = {T:,}" for e, T in material.missing if (e, T) not in known]
        if empty and known:
            said += f" Nothing has finished on {plain_words(named(empty))}."
        remarks.append(said)
    remarks += [
        f"{label} is the best of {n} settings of {id} on {plain_words(named(where))}, picked on "
        "the seeds it is shown on: expect less of it on others. Tests are corrected for that, "
        "means are not; `tune` in a study file picks on seeds of its own."
        for (label, id, n), where in material.best_of().items()  # noqa: A001
    ]
    return remarks


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _provenance(store: Store, manifest: Manifest, *, complete: bool) -> list[tuple[str, str]]:
    """Return the commands, seeds, hashes and versions that make the same numbers again."""
    seeds = list(dict.fromkeys(asked.seed for asked in manifest.runs))
    versions = dict(manifest.versions)
    commit = versions.pop("commit", "")
    found = [
        ("command", "windage run study.toml -o DIR && windage report DIR -o report.html"),
        ("check", "windage verify DIR"),
        ("seeds", ", ".join(map(str, seeds))),
        ("hash of the study", manifest.hash),
    ]
    if complete:
        found.append(("hash of the results", store.hash_of(manifest)))
    found.append(("versions", ", ".join(f"{name} {value}" for name, value in versions.items())))
    if commit:
        found.append(("commit", commit))
    for before in manifest.before:
        others = ", ".join(f"{name} {value}" for name, value in before.items())
        found.append(("parts made with", others))
    return found


def study_text(data: Mapping[str, Any]) -> str:
    """Return a study as the TOML file that asks for it.

    >>> print(study_text({"name": "a", "seeds": 2, "agents": [{"id": "borl", "delta": [0.1]}]}))
    name = "a"
    seeds = 2
    <BLANKLINE>
    [[agents]]
    id = "borl"
    delta = [0.1]
    <BLANKLINE>
    """
    plain = {name: value for name, value in data.items() if not _is_table(value)}
    lines = [f"{_key(name)} = {_value(value)}" for name, value in plain.items()]
    for name, entries in data.items():
        for entry in entries if _is_table(entries) else ():
            lines += ["", f"[[{_key(name)}]]"]
            lines += [f"{_key(key)} = {_value(value)}" for key, value in entry.items()]
    return "\n".join(lines) + "\n"


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(name)} = {_value(one)}" for name, one in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _text(value: str) -> str:
    """Return a basic string: what JSON must escape, TOML escapes alike."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


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
    rule: str = RULE


def render(page: Page) -> str:
    """Return the page as one HTML document, the same bytes for the same page."""
    from plotly.offline import get_plotlyjs

    templates = html.environment(PackageLoader("windage.report.page"))
    templates.filters |= {
        "cell": _cell,
        "short": _short,
        "is_number": _is_number,
        "words": plain_words,
    }
    templates.tests["agent"] = lambda word: isinstance(word, AgentStyle)
    style = templates.get_template("page.css").render(themes=THEMES)
    scripts = {"plotly": get_plotlyjs(), "page": _template("page.js")}
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
        rule=page.rule,
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


def _template(name: str) -> str:
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
