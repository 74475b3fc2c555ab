"""Tables, words and BibTeX of a paper: means with intervals, paired tests, experimental details.

Entries of `references.bib` are separated by empty lines. Above some of them a comment names the
fields that are not verified; it goes where the entry goes.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

from windage.report.page.data import SHARE, AgentRuns, Contrast, Material, Setting, Standings
from windage.report.page.tables import rounded_text
from windage.study.compare import RULE
from windage.study.stats import RESAMPLES

__all__ = [
    "bibliography",
    "details_text",
    "escaped",
    "keys_of",
    "means_table",
    "setting_text",
    "tests_table",
]

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip
_GREEK = {"ρ": r"\ensuremath{\rho}", "η": r"\ensuremath{\eta}", "δ": r"\ensuremath{\delta}"}
_STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
_FACTS = {
    "B_r": "$B_r$", "B_p": "$B_p$", "D": "$D$", "l": r"the number of changes $\ell$",
}  # fmt: skip

_SYMBOLS = {"window": "$W$", "widening": r"$\eta$", "delta": r"$\delta$"}


_OF_AGENT: dict[str, tuple[str, ...]] = {
    "swucrl2-cw": ("cheung2020",),
    "swucrl2-cw-practical": ("cheung2020", "windage"),
    "swucrl2": ("cheung2020",),
    "borl": ("cheung2020",),
    "ucrl2": ("jaksch2010",),
    "ucrl2-restarts": ("jaksch2010",),
    "sw-ucrl": ("gajane2018",),
    "va-ucrl": ("ortner2019",),
    "ucrl2b": ("fruit2020",),
    "ucrl3": ("bourel2020",),
    "sw-ucrl3": ("bourel2020",),
    "kl-ucrl": ("filippi2010",),
    "sw-kl-ucrl": ("filippi2010",),
    "psrl": ("osband2013", "ouyang2017"),
    "sw-psrl": ("osband2013", "ouyang2017"),
    "restarted-psrl": ("osband2013", "ouyang2017"),
    "diff-q": ("wan2021",),
    "imed-rl": ("pesquerel2022",),
    "sw-imed-rl": ("pesquerel2022",),
    "master": ("wei2021",),
    "multi-scale": ("windage",),
    "multi-scale-guarded": ("windage",),
    "ucb1": ("auer2002finite",),
    "sw-ucb": ("garivier2011",),
    "d-ucb": ("garivier2011",),
    "rexp3": ("besbes2014",),
    "exp3-s": ("auer2002nonstochastic",),
    "bob": ("cheung2022",),
}
_ALWAYS = ("cheung2020", "windage")  # dynamic regret, and what computed it


def escaped(text: str) -> str:
    r"""Return a label as LaTeX prints it letter by letter; what no font has is named by its code.

    >>> print(escaped("W=50% & more_"))
    W=50\% \& more\_
    """
    parts = []
    for character in " ".join(text.split()):
        if character in _SPECIAL or character in _GREEK:
            parts.append(_SPECIAL.get(character) or _GREEK[character])
        elif ord(character) < 128:
            parts.append(character if character.isprintable() else "")
        elif unicodedata.category(character)[0] in "LN" and ord(character) < 0x250:
            parts.append(character)  # letters of Latin scripts
        elif character in "–—‘’“”…":
            parts.append({"–": "--", "—": "---", "…": r"\dots{}"}.get(character, character))
        else:
            parts.append(rf"\texttt{{U+{ord(character):04X}}}")
    return "".join(parts)


def means_table(material: Material) -> str:
    """Return the table of means: one row an agent, one column an environment."""
    judged = material.judged
    agents = material.results.agents
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        rf"\caption{{{_means_caption(judged)}}}",
        r"\label{tab:means}",
        r"\begin{tabular}{l" + "r@{\\hspace{0.6em}}l" * len(judged) + "}",
        r"\toprule",
        " & ".join(
            ["agent", *(rf"\multicolumn{{2}}{{c}}{{{_environment(c)}}}" for c in judged)]
        ) + r" \\",
        r"\midrule",
    ]  # fmt: skip
    for agent in agents:
        cells = [_mean_cell(comparison, agent.label) for comparison in judged]
        lines.append(" & ".join([escaped(agent.label), *cells]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def tests_table(material: Material) -> str:
    """Return the table of paired tests: the best learner less every other agent."""
    lines = [
        r"\begin{table}[t]",
        r"\centering",
        r"\caption{Paired differences between the best learner of each environment and the other "
        r"agents, in points of the optimal gain where an oracle is known and in reward per step "
        r"elsewhere: mean, 95\,\% bootstrap interval over seeds, $n$ paired seeds, and $p$-value. "
        rf"The $p$-values are those of two-sided {RULE}.}}",
        r"\label{tab:tests}",
        r"\begin{tabular}{lrlrr}",
        r"\toprule",
        r"the best less \dots & mean & 95\,\% interval & $n$ & $p$ \\",
        r"\midrule",
    ]
    for place, comparison in enumerate(material.judged):
        if place:
            lines.append(r"\addlinespace")
        best = escaped(comparison.learners[0].label) if comparison.learners else "no learner"
        lines.append(rf"\multicolumn{{5}}{{l}}{{\emph{{{_environment(comparison)}}}: {best}}} \\")
        lines += [_test_row(comparison, contrast) for contrast in comparison.contrasts]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def details_text(
    material: Material,
    versions: dict[str, str],
    study_hash: str,
    before: Sequence[dict[str, str]] = (),
) -> str:
    """Return the paragraph "Experimental details"; `before` are versions that ran parts earlier."""
    results = material.results
    environments = "; ".join(
        rf"{escaped(s.environment)} (\texttt{{{escaped(s.environment_id)}}}, "
        rf"$T = {_number(s.horizon)}$)"
        for s in results.settings
    )
    counts = sorted({cell.n for s in results.settings for cell in results.cells(s)})
    seeds = counts[-1]
    ran = f"{counts[0]} to {seeds} seeds" if counts[0] < seeds else _count(seeds, "seed")
    sentences = [
        rf"\paragraph{{Experimental details.}} We ran {_count(len(results.agents), 'agent')} "
        rf"on {_count(len(results.environments), 'environment')}: {environments}.",
        f"Each agent ran on {ran}; agents on one seed meet the same noise, so "
        "differences are paired by seed.",
        *_agent_sentences(material),
        r"Performance is the expected reward of the path as a share of $\sum_t \rho^*_t$, the sum "
        r"of the certified optimal average rewards of the model of every $t$; regret is the "
        r"difference of the two.",
        *_statistics(seeds),
        _software(versions, before),
        rf"The hash of the study is {_code(study_hash)}.",
    ]
    return "\n".join(sentences) + "\n"


def _statistics(seeds: int) -> list[str]:
    """Return how intervals and tests were made, where there are any."""
    if seeds < 2:
        return ["With one seed there are no intervals and no tests."]
    return [
        r"Intervals are 95\,\% percentile bootstrap intervals over seeds "
        rf"({_number(RESAMPLES)} resamples); $p$-values are those of two-sided {RULE}."
    ]


def _software(versions: dict[str, str], before: Sequence[dict[str, str]]) -> str:
    """Return what made the runs; parts may be older."""
    whole = rf"{_made_with(versions, cite=True)}."
    if not before:
        return f"All runs were made with {whole}"
    older = "; ".join(_made_with(one, cite=False) for one in before)
    return f"Runs were made with {whole} Parts of the study were made earlier, with {older}."


def _made_with(versions: dict[str, str], *, cite: bool) -> str:
    source = r" \citep{windage}" if cite else ""
    commit = versions.get("commit", "")
    at = f" (commit {_code(commit)})" if commit else ""
    return (
        rf"windage {escaped(versions.get('windage', ''))}{at}{source} on Python "
        rf"{escaped(versions.get('python', ''))} and NumPy {escaped(versions.get('numpy', ''))}"
    )


def _agent_sentences(material: Material) -> list[str]:
    """Return the id, source, settings and given facts of each agent."""
    found = []
    for agent in material.results.agents:
        cells = [
            cell
            for setting in material.results.settings
            for cell in material.results.cells(setting)
            if cell.agent.label == agent.label
        ]
        cited = keys_of(agent.id)
        source = rf" \citep{{{','.join(cited)}}}" if cited else ""
        parts = [rf"\texttt{{{escaped(agent.id)}}}{source}"]
        for name in ("radii", "ties"):
            texts = _values(cells, name)
            if texts:
                parts.append(f"{name} {escaped(', '.join(texts))}")
        for name, symbol in _SYMBOLS.items():
            values = sorted(_values(cells, name))
            if values:
                parts.append(f"{symbol} = {_range(values)}")
        variants = [rounded_text(text) for text in _values(cells, "variant")]
        if variants:
            parts.append(f"variant: {escaped(' or '.join(variants))}")
        told = " and ".join(_FACTS.get(fact, escaped(fact)) for fact in agent.told)
        parts.append(f"given {told}" if told else "given nothing of the drift")
        found.append(rf"\emph{{{escaped(agent.label)}}} is {'; '.join(parts)}.")
    return found


def _values(cells: Sequence[AgentRuns], name: str) -> list[Any]:
    """Return the different values of a column; an empty text is none, but 0 is one."""
    found = dict.fromkeys(v for cell in cells for v in cell.labels(name))
    return [value for value in found if value is not None and value != ""]


def _means_caption(judged: Sequence[Standings]) -> str:
    shares = all(c.measure is SHARE for c in judged)
    what = (
        r"Share of the optimal gain, in \%" if shares
        else r"Share of the optimal gain in \%, or mean reward per step where no oracle is known"
    )  # fmt: skip
    seeds = sorted({one.cell.n for c in judged for one in c.ranking})
    n = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    if seeds[-1] < 2:
        return rf"{what}: one run each, so no intervals and no tests. Bold: the best learner."
    told = rf"{what}: mean over $n = {n}$ seeds and 95\,\% bootstrap interval."
    tested = [c for c in judged if c.contrasts]
    if not tested:
        return f"{told} Bold: the best learner."
    undecided = [c for c in tested if not c.decidable]
    if len(undecided) == len(tested):
        return rf"{told} Bold: the best learner; the seeds are too few for any test."
    bold = "Bold: the best learner and those no test tells from it"
    if undecided:
        names = ", ".join(escaped(c.setting.environment) for c in undecided)
        bold += f" (only the best on {names}, where the seeds are too few for any test)"
    return (
        rf"{told} {bold}. Stars: the best learner is better, by {RULE} "
        r"($^{*}$ $p < 0.05$, $^{**}$ $p < 0.01$, $^{***}$ $p < 0.001$)."
    )


def _mean_cell(comparison: Standings, label: str) -> str:
    found = next((one for one in comparison.ranking if one.label == label), None)
    if found is None:
        return "-- &"
    digits = comparison.measure.digits
    text = f"{found.score.estimate:.{digits}f}"
    contrast = next((c for c in comparison.contrasts if c.other.label == label), None)
    best = bool(comparison.learners) and comparison.learners[0].label == label
    tied = contrast is not None and not contrast.significant
    if found.cell.agent.kind == "learner" and (best or (tied and comparison.decidable)):
        text = rf"\textbf{{{text}}}"
    stars = _stars(contrast) if comparison.decidable else ""
    between = f"[{found.score.low:.{digits}f}, {found.score.high:.{digits}f}]"
    return f"{text}{stars} & {between if found.cell.n > 1 else ''}"


def _stars(contrast: Contrast | None) -> str:
    if contrast is None or contrast.found.difference.estimate <= 0:
        return ""
    return next((f"$^{{{s}}}$" for p, s in _STARS if contrast.corrected < p), "")


def _test_row(comparison: Standings, contrast: Contrast) -> str:
    found, digits = contrast.found, comparison.measure.digits
    d = found.difference
    between = f"[${d.low:.{digits}f}$, ${d.high:.{digits}f}$]"
    p = "$< 0.001$" if contrast.corrected < 0.001 else f"${contrast.corrected:.3f}$"
    cells = [
        rf"\quad {escaped(contrast.other.label)}",
        f"${d.estimate:+.{digits}f}$",
        *((between, str(found.n), p) if found.n > 1 else ("--", "1", "--")),
    ]
    return " & ".join(cells) + r" \\"


def _environment(comparison: Standings) -> str:
    return setting_text(comparison.setting)


def setting_text(setting: Setting) -> str:
    """Return an environment and its horizon."""
    return rf"{escaped(setting.environment)}, $T = {_number(setting.horizon)}$"


def _code(text: str) -> str:
    r"""Return a hash in pieces, between which a line may end.

    >>> print(_code("0123456789abcdef"))
    \texttt{01234567\allowbreak{}89abcdef}
    """
    pieces = r"\allowbreak{}".join(escaped(text[k : k + 8]) for k in range(0, len(text), 8))
    return rf"\texttt{{{pieces}}}"


def _range(values: Sequence[float]) -> str:
    texts = [_number(v) if isinstance(v, int) else f"{v:.3g}" for v in values]
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}"


def _number(value: int) -> str:
    return f"{value:,}".replace(",", "{,}")


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def keys_of(agent_id: str) -> tuple[str, ...]:
    """Return the keys to cite for an agent; nothing for yardsticks and agents of one's own.

    >>> keys_of("borl"), keys_of("random")
    (('cheung2020',), ())
    """
    return _OF_AGENT.get(agent_id, ())


def bibliography(agent_ids: Iterable[str]) -> str:
    """Return the BibTeX file of the agents, every entry once, sorted."""
    wanted = set(_ALWAYS).union(*(keys_of(agent) for agent in agent_ids))
    entries = _entries()
    return "\n\n".join(entries[key] for key in sorted(wanted)) + "\n"


@functools.cache
def _entries() -> dict[str, str]:
    """Return all entries by their keys."""
    text = (files("windage.report.latex") / "references.bib").read_text("utf-8")
    entries = text.strip().split("\n\n")
    return {re.findall(r"^@\w+\{(\w+),", entry, re.MULTILINE)[0]: entry for entry in entries}
