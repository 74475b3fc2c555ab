"""The reference of all public names, made from their docstrings whenever the site is built.

mkdocs calls `on_files`; nothing is kept, so the page is never older than the docstrings.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import windage as wd

PLACE = "reference/api.md"
HEAD = """\
# All public names

Every name of `import windage as wd`, from its docstring. The other pages of this reference tell the
same in context, with examples that belong together.
"""
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_LISTS = ("Parameters", "Attributes", "Raises", "Returns")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put the page among those of the site."""
    files.append(File.generated(config, PLACE, content=page()))
    return files


def page() -> str:
    """Return the whole page."""
    rooms = [name for name in wd.__all__ if inspect.ismodule(getattr(wd, name))]
    names = [name for name in sorted(wd.__all__, key=str.lower) if name not in rooms]
    parts = [HEAD, *(entry(f"wd.{name}", getattr(wd, name), 2) for name in names)]
    for room in sorted(rooms):
        module = getattr(wd, room)
        parts.append(f"## wd.{room}\n\n{_prose(inspect.getdoc(module) or '')}\n")
        listed = getattr(module, "__all__", [])
        own = [name for name in sorted(listed, key=str.lower) if name not in names]
        parts += [entry(f"wd.{room}.{name}", getattr(module, name), 3) for name in own]
    return "\n".join(parts)


def entry(name: str, thing: Any, depth: int) -> str:
    """Return the section of one name: signature, docstring, and the methods of a class."""
    lines = [f"{'#' * depth} {name}\n"]
    if inspect.isclass(thing) or inspect.isroutine(thing):
        lines.append(f"```text\n{_signature(name, thing)}\n```\n")
        lines.append(_prose(inspect.getdoc(thing) or ""))
    else:
        lines.append(f"`{type(thing).__name__}`")
    if inspect.isclass(thing) and not issubclass(thing, (BaseException, Warning)):
        lines += _members(thing)
    return "\n".join(lines).rstrip() + "\n"


def _members(kind: type) -> list[str]:
    rows = []
    for name, raw in inspect.getmembers_static(kind):
        if name.startswith("_") or not _is_ours(kind, name):
            continue
        bare = raw.__func__ if isinstance(raw, (classmethod, staticmethod)) else raw
        if isinstance(bare, property) or type(bare).__name__ == "cached_property":
            shown, doc = f"`.{name}`", inspect.getdoc(bare)
        elif inspect.isroutine(bare):
            call = _arguments(bare, skip_first=not isinstance(raw, staticmethod))
            shown, doc = f"`.{name}{call}`", inspect.getdoc(bare)
        else:
            continue
        first = (doc or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        rows.append(f"| {shown.replace('|', chr(92) + '|')} | {_stars(first)} |")
    return ["", "| member | what it is |", "|---|---|", *rows] if rows else []


def _is_ours(kind: type, name: str) -> bool:
    """Whether the member is defined in windage and not in a base class of Python's."""
    home = next((base for base in kind.__mro__ if name in vars(base)), object)
    return home.__module__.startswith("windage")


def _signature(name: str, thing: Any) -> str:
    try:
        call = _arguments(thing)
    except (TypeError, ValueError):
        call = "(...)"
    return textwrap.fill(f"{name}{call}", 96, subsequent_indent="    ", break_on_hyphens=False)


def _arguments(thing: Any, *, skip_first: bool = False) -> str:
    """Return the arguments with their defaults, without types: the docstring tells those."""
    shown, starred = [], False
    parameters = list(inspect.signature(thing).parameters.values())
    for p in parameters[1:] if skip_first else parameters:
        if p.kind is p.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        starred = starred or p.kind is p.VAR_POSITIONAL
        default = "" if p.default is p.empty else f"={_default(p.default)}"
        shown.append(f"{mark}{p.name}{default}")
    return f"({', '.join(shown)})"


def _default(value: Any) -> str:
    text = repr(value)
    return text if " at 0x" not in text else "..."


def _prose(doc: str) -> str:
    """Return a docstring as Markdown: lists of names as lists, examples as they are printed."""
    parts = _SECTION.split(doc)
    made = [_paragraphs(parts[0])]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        made.append(f"**{title}**\n")
        made.append(_listed(body) if title in _LISTS else _paragraphs(body))
    return "\n\n".join(part.strip() for part in made if part.strip()) + "\n"


def _listed(body: str) -> str:
    rows: list[tuple[str, list[str]]] = []
    for line in body.strip("\n").splitlines():
        if line and not line.startswith(" "):
            rows.append((line, []))
        elif rows:
            rows[-1][1].append(line.strip())
    names = [", ".join(f"`{one.strip()}`" for one in name.split(",")) for name, _ in rows]
    return "\n".join(
        f"- {name}: {_stars(' '.join(text).strip())}"
        for name, (_, text) in zip(names, rows, strict=True)
    )


def _paragraphs(text: str) -> str:
    """Return paragraphs; indented ones and examples are kept letter by letter."""
    made = []
    for part in re.split(r"\n\s*\n", text.strip("\n")):
        if part.startswith((">>>", "    ")):
            made.append(f"```text\n{textwrap.dedent(part)}\n```")
        elif "\n    " in part:  # a heading and what it says, as in environments
            made.append(f"```text\n{part}\n```")
        else:
            made.append(_stars(part))
    return "\n\n".join(made)


def _stars(text: str) -> str:
    return re.sub(r"\b(rho|W|eta)\*", r"\1\\*", text).replace("<", "&lt;")
