"""A real browser with the network off, and what to ask of a page in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

READY = 60_000  # milliseconds until all charts are drawn

# What each chart has to draw, and what it has drawn: traces that are switched on, by kind.
DRAWN = """() => [...document.querySelectorAll("[data-chart]")].map((place) => {
  const on = place.data.filter((trace) => trace.visible !== false);
  const size = (trace) => (trace.z ? trace.z.flat() : trace.y).filter((v) => v !== null).length;
  const count = (selector) => place.querySelectorAll(selector).length;
  const images = [...place.querySelectorAll(".heatmaplayer image")];
  return {
    id: place.dataset.chart,
    title: place.closest("figure").querySelector("h3").textContent,
    wanted: {
      scatter: on.filter((trace) => trace.type === "scatter" && size(trace)).length,
      heatmap: on.filter((trace) => trace.type === "heatmap" && size(trace)).length,
      bar: on.filter((trace) => trace.type === "bar" && size(trace)).length,
    },
    found: {
      scatter: count(".scatterlayer .trace"),
      heatmap: images.filter((image) => image.getBoundingClientRect().width > 50).length,
      bar: count(".barlayer .trace"),
    },
    marks: count(".scatterlayer path, .scatterlayer .point, .barlayer path, .heatmaplayer image"),
    box: place.getBoundingClientRect().toJSON(),
  };
})"""

# Words of charts that leave their chart, and labels beside lines that touch each other.
CLIPPED = """() => [...document.querySelectorAll("[data-chart]")].flatMap((place) => {
  const frame = place.getBoundingClientRect();
  return [...place.querySelectorAll("svg text")]
    .filter((text) => text.textContent.trim() && text.getBoundingClientRect().width > 0)
    .filter((text) => {
      const box = text.getBoundingClientRect();
      return box.left < frame.left - 1 || box.right > frame.right + 1
        || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
    })
    .map((text) => `${place.dataset.chart}: ${text.textContent}`);
})"""
TOUCHING = """() => [...document.querySelectorAll("[data-chart]")].flatMap((place) => {
  const boxes = [...place.querySelectorAll(".annotation-text, .xtick text, .ytick text")]
    .map((text) => [text.textContent, text.getBoundingClientRect()])
    .filter(([words, box]) => words.trim() && box.width > 0);
  return boxes.flatMap(([words, a], i) => boxes.slice(i + 1)
    .filter(([, b]) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1.5
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)
    .map(([other]) => `${place.dataset.chart}: ${words} / ${other}`));
})"""


class Visit:
    """A page that was opened, and what it did: errors, messages, requests."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", lambda dialog: self.errors.append(f"dialog {dialog.message}"))

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def open(self, path: Path | str) -> Visit:
        """Open a file or an address, and wait until all charts are drawn."""
        self.page.goto(path if isinstance(path, str) else path.resolve().as_uri())
        self.ready()
        return self

    def ready(self) -> None:
        count = self.page.locator("[data-chart]").count()
        self.page.locator(f"html[data-ready='{count}']").wait_for(state="attached", timeout=READY)

    def drawn(self) -> list[dict[str, Any]]:
        return self.page.evaluate(DRAWN)

    def foreign_requests(self) -> list[str]:
        """What was asked of anybody but the disk."""
        return [url for url in self.requests if not url.startswith(("file:", "data:", "blob:"))]
