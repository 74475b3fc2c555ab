"""The report in a real browser, opened from disk with the network off."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

import windage as wd
from tests.e2e import studies
from tests.e2e.browser import CLIPPED, TOUCHING
from windage.report.page import write_report

CHARTS = [
    "Share of the optimal gain",
    "Regret against t",
    "Probability of improvement",
    "Regret as T grows",
    "Window and widening",
    "Episodes",
    "Why episodes end",
    "BORL's choice of window and widening",
    "What the window holds",
]


def until(page, holds):
    """Wait until something holds, as long as a busy machine may need for it."""
    for _ in range(200):
        if holds():
            return True
        page.wait_for_timeout(100)
    return False


@pytest.fixture(scope="module")
def page_file(rich_study, tmp_path_factory):
    target = tmp_path_factory.mktemp("page") / "report.html"
    write_report(rich_study, target)
    return target


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_every_chart_draws_its_data_and_stays_in_its_place(visit, page_file, width, scheme):
    seen = visit(page_file, width, scheme)
    charts = seen.drawn()
    assert [chart["title"] for chart in charts] == CHARTS
    for chart in charts:
        assert chart["found"] == chart["wanted"], chart["id"]
        assert sum(chart["wanted"].values()) > 0, chart["id"]
        assert chart["marks"] > 0, chart["id"]
        assert chart["box"]["height"] > 150, chart["id"]
    assert seen.page.evaluate(CLIPPED) == []
    assert seen.page.evaluate(TOUCHING) == []
    wide = seen.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width, "the page must be scrolled sideways"
    assert seen.errors == []
    assert seen.foreign_requests() == []


@pytest.fixture(scope="module")
def opened(visit_once, page_file):
    return visit_once(page_file)


def test_the_drawn_regret_is_that_of_the_runs(opened, rich_study):
    """From the runs' files to what the browser holds, by hand."""
    drawn = opened.page.evaluate(
        """() => document.querySelectorAll("[data-chart]")[1].data
             .filter((trace) => trace.hovertemplate && trace.legendgroup)
             .map((trace) => [trace.legendgroup, trace.x, trace.y])"""
    )
    results = wd.load_results(rich_study).filter(horizon=800)
    assert {name for name, _, _ in drawn} == set(results["agent"])
    for name, x, y in drawn:
        curves = results.filter(agent=name)["cumulative_regret"].to_list()
        means = [sum(column) / len(column) for column in zip(*curves, strict=True)]
        assert x == [0, *results["t"][0].to_list()]
        assert y[0] == 0
        assert y[1:] == pytest.approx(means, rel=1e-4, abs=1e-9)


def test_the_heat_map_marks_the_best_cell_and_the_theorem(opened, rich_study):
    place = opened.page.locator("[data-chart$=environment-1-window-and-widening]")
    data, shapes = place.evaluate("place => [place.data, place.layout.shapes]")
    z, (box,), star = data[0]["z"], shapes, data[1]
    assert (box["name"], star["name"]) == ("best cell", "W*, eta*")
    x, y = (box["x0"] + box["x1"]) / 2, (box["y0"] + box["y1"]) / 2
    world = wd.envs.make("two-state-cosine", horizon=800)
    budgets = world.budgets()
    W = wd.optimal_window(world.space, 800, budgets.reward, budgets.transition)
    assert 0 < star["x"][0] < 1  # between 50 and 200, as the logarithm has it
    assert 50 * 4 ** star["x"][0] == pytest.approx(W, rel=1e-3)
    results = wd.load_results(rich_study).filter(horizon=800, agent_id="swucrl2-cw")
    means = results.select("widening", "window", "regret").group_by("widening", "window").mean()
    best = means.filter(window=[50, 200][int(x)], widening=[0.05, 0.4][int(y)])["regret"][0]
    assert best == pytest.approx(means["regret"].min(), rel=1e-12)
    assert min(v for row in z for v in row) == pytest.approx(best, rel=1e-4)


def test_the_key_and_the_views_by_keyboard(visit, page_file):
    seen = visit(page_file, width=400)
    page = seen.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the verdict"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    figure = page.locator("figure", has=page.get_by_role("heading", name="Regret against t"))
    button = figure.get_by_role("button", name="BORL")
    before = len(figure.locator(".scatterlayer .trace").all())
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    left = before - 2  # without a line and its band
    assert until(page, lambda: len(figure.locator(".scatterlayer .trace").all()) == left)
    pick = page.get_by_label("Shown:").last
    first = pick.locator("xpath=ancestor::figure//*[@data-chart]")
    values = first.evaluate("place => JSON.stringify(place.data[0].z)")
    pick.focus()
    pick.select_option(index=1)
    assert until(page, lambda: first.evaluate("place => JSON.stringify(place.data[0].z)") != values)
    assert seen.errors == []


STOP = """() => {
  const one = document.activeElement, box = one.getBoundingClientRect();
  const look = getComputedStyle(one);
  return one === document.body ? null : {
    name: (one.ariaLabel || one.textContent || "").trim(),
    seen: box.width > 0 && box.bottom > 0 && box.top < window.innerHeight,
    outlined: look.outlineStyle !== "none" && parseFloat(look.outlineWidth) >= 2,
  };
}"""


def test_every_stop_of_the_keyboard_has_a_name_and_is_seen(visit, page_file):
    page = visit(page_file).page
    page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    stops = []
    for _ in range(300):
        page.keyboard.press("Tab")
        stop = page.evaluate(STOP)
        if stop is None:  # behind the last one
            break
        stops.append(stop)
    assert 30 < len(stops) < 300, "it is a trap, or there is nothing to reach"
    assert [
        stop for stop in stops if not (stop["name"] and stop["seen"] and stop["outlined"])
    ] == []


def test_tables_sort_by_value_and_download_as_csv(opened, rich_study):
    page = opened.page
    table = page.locator("#numbers table").first
    column = [h.text_content() for h in table.locator("th").all()].index("regret")
    heading = table.locator("th").nth(column)

    def shown():
        cells = table.locator(f"tbody tr td:nth-child({column + 1})").all_text_contents()
        return [float(cell.replace(",", "").replace("\u2212", "-")) for cell in cells]

    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert shown() == sorted(shown())
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert shown() == sorted(shown(), reverse=True)
    page.locator("#numbers details summary").first.click()
    with page.expect_download() as download:
        page.locator("#numbers details [data-csv]").click()
    text = download.value.path().read_text("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    results = wd.load_results(rich_study)
    assert len(rows) == results.height
    for row, wanted in zip(rows, results.iter_rows(named=True), strict=True):
        assert row["key"] == wanted["key"]
        assert float(row["regret"]) == wanted["regret"]  # every digit
    assert opened.errors == []


def test_colours_change_with_the_switch_and_charts_save_as_svg(visit, page_file):
    seen = visit(page_file)
    page = seen.page

    def look():
        seen.ready()
        return page.evaluate(
            """() => [getComputedStyle(document.body).backgroundColor,
                 document.querySelector("[data-chart]").layout.font.color]"""
        )

    light = look()
    page.get_by_role("button", name="Dark").click()
    assert until(page, lambda: all(a != b for a, b in zip(light, look(), strict=True)))
    page.get_by_role("button", name="Light").click()
    assert until(page, lambda: look() == light)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as SVG").first.click()
    picture = download.value.path().read_text()
    assert picture.startswith("<svg")
    assert "window PSRL" in picture
    assert seen.errors == []


def test_paper_is_white_and_all_charts_fit_on_it(visit, page_file, tmp_path):
    seen = visit(page_file, scheme="dark")
    seen.page.emulate_media(media="print")
    seen.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert seen.page.evaluate("document.documentElement.dataset.theme") == "light"
    assert until(seen.page, lambda: seen.page.evaluate(CLIPPED) == [])
    data = seen.page.pdf(path=str(tmp_path / "page.pdf"), format="A4")
    assert data.startswith(b"%PDF")
    assert seen.errors == []


def test_words_for_those_who_do_not_see_the_charts(opened):
    page = opened.page
    for chart in page.locator("[data-chart]").all():
        assert chart.get_attribute("role") == "img"
        assert len(chart.get_attribute("aria-label")) > 60
        figure = chart.locator("xpath=ancestor::figure")
        assert figure.locator("table tbody tr").count() > 0
        assert figure.get_attribute("aria-labelledby") == figure.locator("h3").get_attribute("id")
    headings = page.evaluate(
        "() => [...document.querySelectorAll('h1,h2,h3')].map((h) => Number(h.tagName[1]))"
    )
    assert headings[0] == 1
    assert headings.count(1) == 1
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, select, a")].filter((one) =>
             !(one.textContent || one.ariaLabel || "").trim()).map((one) => one.outerHTML)"""
    )
    assert unnamed == []


@pytest.mark.parametrize("width", [1280, 400])
def test_hostile_labels_run_nothing_and_load_nothing(visit, tmp_path, width):
    folder = studies.hostile(tmp_path / "results")
    write_report(folder, tmp_path / "report.html")
    seen = visit(tmp_path / "report.html", width)
    page = seen.page
    assert page.title() == f"name {studies.HOSTILE} · windage report"
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert page.evaluate("document.querySelectorAll('main script').length") == 0
    labels = page.locator("#setup table").first.locator("tbody td:first-child").all_text_contents()
    assert f"psrl {studies.HOSTILE}" in labels
    page.locator("[data-chart]").first.hover()
    shown = "".join(page.locator("[data-chart] svg text").all_text_contents())
    assert "psrl </script><img src=x" in shown, "it is shown letter by letter"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    with page.expect_download() as download:
        page.locator("#numbers [data-csv]").first.click()
    text = download.value.path().read_text("utf-8-sig")
    assert not re.search(r'^"?=', "\n".join(",".join(r) for r in csv.reader(io.StringIO(text))))
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    assert any(cell.startswith("'=cmd") for cell in cells)
    assert not any(cell.startswith("=") for cell in cells)
    assert page.title() != "owned"
    assert seen.errors == []
    assert seen.foreign_requests() == []


def test_the_policy_lets_nothing_else_run(visit, page_file, tmp_path):
    """What somebody adds to the file does not run: the policy names our scripts by their hashes."""
    text = page_file.read_text()
    end = text.rindex("</body>")
    bad = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">"
    (tmp_path / "changed.html").write_text(text[:end] + bad + text[end:])
    seen = visit(tmp_path / "changed.html")
    seen.page.wait_for_timeout(200)
    assert "owned" not in seen.page.title()
    assert any("Content Security Policy" in error for error in seen.errors)


def test_the_data_of_the_page_are_json(page_file):
    text = page_file.read_text()
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    data = json.loads(found[1])
    assert len(data["charts"]) == len(CHARTS)
    assert "http" not in found[1]
