"""`windage report`: what it says, what it writes, what it refuses; and scene 5, a LaTeX table."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import windage as wd
from tests.e2e import studies
from tests.e2e.commands import refused, windage_here
from windage.cli import main
from windage.report.page import make_report


@pytest.fixture(scope="module")
def duel(tmp_path_factory):
    return studies.duel(tmp_path_factory.mktemp("duel") / "results")


def means(folder, column="share"):
    """The means by agent, by hand."""
    table = wd.load_results(folder)
    rows = table.select("agent", column).rows()
    agents = dict.fromkeys(agent for agent, _ in rows)
    return {a: sum(x for b, x in rows if b == a) / sum(b == a for b, _ in rows) for a in agents}


def test_the_verdict_says_who_by_how_much_and_on_what(here, duel, capsys):
    assert main(["report", str(duel), "-o", "page.html"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    headline, card, page = out.splitlines()
    assert headline == "PSRL leads on river."
    share = means(duel)
    gap = 100 * (share["PSRL"] - share["UCRL2"])
    assert gap > 10
    assert f"earns {100 * share['PSRL']:.1f} % of the optimal gain" in card
    assert "given B_r and B_p" in card
    assert f"It beats UCRL2 by {gap:.1f} points (" in card
    assert "8 paired seeds; p = 0.0078)" in card  # 2 of the 2^8 signs are as far out
    assert re.fullmatch(r"page: page.html \([45]\.\d MB\)", page)
    assert "PSRL leads on river." in re.sub("<[^>]+>", "", Path("page.html").read_text())


def test_the_same_bytes_twice(here, duel):
    for name in ("one", "two"):
        assert main(["report", str(duel), "-o", f"{name}.html", "--paper", name]) == 0
    assert Path("one.html").read_bytes() == Path("two.html").read_bytes()
    names = sorted(path.name for path in Path("one").iterdir())
    assert names == sorted(path.name for path in Path("two").iterdir())
    assert {"means.tex", "tests.tex", "details.tex", "references.bib", "regret-1.pdf"} <= set(names)
    for name in names:
        assert (Path("one") / name).read_bytes() == (Path("two") / name).read_bytes(), name


# --- scene 5: a LaTeX table with intervals and paired tests, well-formed --------------------------


def assert_well_formed(text):
    """Braces and environments match, rows of a table have its columns, nothing special is bare."""
    plain = re.sub(r"\\[\\{}$&#%_]", "", text.replace(r"\\", "\n"))
    depth = 0
    for character in plain:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    assert plain.count("$") % 2 == 0
    opened = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    for body in re.findall(r"\\midrule(.*?)\\bottomrule", text, re.DOTALL):
        columns = re.search(r"\\begin\{tabular\}\{(.*)\}\n", text)[1]
        count = len(re.sub(r"@\{\\hspace\{[^}]*\}\}", "", columns))
        for row in body.split(r"\\")[:-1]:
            cells = re.sub(r"\\&", "", row).count("&") + 1
            spans = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", row))
            assert cells + spans == count, row


def test_a_latex_table_with_intervals_and_paired_tests(here, duel):
    done = windage_here("report", str(duel), "-o", "r.html", "--paper", "paper", cwd=here)
    assert done.returncode == 0, done.stderr
    folder = here / "paper"
    table, tests = (folder / "means.tex").read_text(), (folder / "tests.tex").read_text()
    for text in (table, tests, (folder / "details.tex").read_text()):
        assert_well_formed(text)
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert rule in table
        assert rule in tests
    share = means(duel)
    best, other = (f"{100 * share[name]:.1f}" for name in ("PSRL", "UCRL2"))
    assert re.search(rf"PSRL & \\textbf\{{{best}\}} & \[\d+\.\d, \d+\.\d\]", table)
    assert re.search(rf"UCRL2 & {other}\$\^\{{\*\*\}}\$ & \[\d+\.\d, \d+\.\d\]", table)
    assert "$n = 8$ seeds" in table
    gap = 100 * (share["PSRL"] - share["UCRL2"])
    row = rf"UCRL2 & \$\+{gap:.1f}\$ & \[\$\d+\.\d\$, \$\d+\.\d\$\] & 8 & \$0\.008\$"
    assert re.search(row, tests)
    details = (folder / "details.tex").read_text()
    assert "8 seeds" in details
    assert r"\citep{osband2013,ouyang2017}" in details
    cited = set(re.findall(r"\\citep\{([^}]*)\}", details))
    keys = set(re.findall(r"@\w+\{(\w+),", (folder / "references.bib").read_text()))
    assert {key for group in cited for key in group.split(",")} <= keys
    assert_well_formed((folder / "regret-1-pgf.tex").read_text())
    header, *rows = (folder / "regret-1.dat").read_text().splitlines()
    assert {len(row.split()) for row in rows} == {len(header.split())}
    for name in ("regret-1", "shares-1"):
        assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert "<svg" in (folder / f"{name}.svg").read_text()


def test_hostile_names_in_latex(here):
    folder = studies.hostile(here / "results")
    assert main(["report", str(folder), "-o", "r.html", "--paper", "paper"]) == 0
    for name in ("means.tex", "tests.tex", "details.tex", "example.tex", "regret-1-pgf.tex"):
        assert_well_formed(Path("paper", name).read_text())
    assert r"\textless{}img src=x" in Path("paper/means.tex").read_text()


# --- what a new user meets ------------------------------------------------------------------------


def test_an_unfinished_study_says_so(here, duel, capsys):
    shutil.copytree(duel, "part")
    for path in sorted(Path("part/runs").iterdir())[:5]:
        path.unlink()
    assert main(["report", "part", "-o", "r.html"]) == 0
    assert "11 of 16 runs are in" in capsys.readouterr().out
    assert "11 of 16 runs are in" in Path("r.html").read_text()


def test_one_seed_proves_nothing(here):
    folder = studies.duel(here / "results", seeds=1, horizon=200)
    said = make_report(folder).verdict
    assert said[0].startswith("One seed each")
    assert "no interval and no test" in said[1]


def test_few_seeds_name_a_leader_and_prove_nothing(here):
    folder = studies.duel(here / "results", seeds=3)
    headline, card = make_report(folder).verdict
    assert headline == "PSRL has the best mean on river, but 3 seeds are too few to prove it."
    assert "to test 1 pair at 5 % takes 6 seeds at least" in card  # 2 / 2^6 < 0.05 < 2 / 2^5
    assert "p = " not in card


@pytest.mark.parametrize(
    ("agents", "headline"),
    [
        ([{"id": "ucrl2"}], "ucrl2 is the only learner here"),
        ([{"id": "oracle"}, {"id": "random"}], "No learner took part"),
    ],
)
def test_little_company(here, agents, headline):
    study = wd.Study([{"id": "two-state-cosine"}], agents, horizon=100, seeds=2)
    report = make_report(studies.run(study, here / "results"))
    assert report.verdict[0].startswith(headline)
    assert report.html().startswith("<!doctype html>")


def test_an_environment_without_an_oracle_is_judged_by_its_reward(here):
    world = {"id": "two-state-cosine", "oracle": False}
    agents = [{"id": "ucrl2"}, {"id": "sw-psrl"}, {"id": "random"}]
    report = make_report(studies.run(wd.Study([world], agents, horizon=300, seeds=7), here / "r"))
    assert "per step" in report.verdict[1]
    assert "This environment has no oracle" in report.verdict[1]
    titles = [chart.title for chart in report.page.sections[0].charts]
    assert titles[:2] == ["Mean reward per step", "Reward against t"]


def test_what_is_refused(here, duel, capsys):
    assert refused(capsys, "report", "gone").startswith("gone: is no folder of results")
    Path("empty").mkdir()
    assert refused(capsys, "report", "empty").startswith("empty: holds no study")
    assert refused(capsys, "report", str(duel), "-o", "page.pdf").startswith("page.pdf: is no name")
    Path("taken").write_text("")
    said = refused(capsys, "report", str(duel), "-o", "taken/page.html")
    assert said.startswith("taken/page.html: cannot be written")
    shutil.copytree(duel, "none")
    shutil.rmtree("none/runs")
    Path("none/runs").mkdir()
    assert refused(capsys, "report", "none").startswith("none: no run is in it yet")
    shutil.copytree(duel, "damaged")
    file = next(Path("damaged/runs").iterdir())
    file.write_bytes(file.read_bytes()[:-20])
    assert file.name in refused(capsys, "report", "damaged")
    Path("damaged/manifest.json").write_text("{")
    assert "manifest.json: cannot be read" in refused(capsys, "report", "damaged")
    assert not Path("report.html").exists()
