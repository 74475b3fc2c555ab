"use strict";
(() => {
  const NARROW = 640;
  const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
  const root = document.documentElement;
  const darkness = window.matchMedia("(prefers-color-scheme: dark)");
  const printing = window.matchMedia("print");
  let data = read(document);
  let forced = null; // the theme of paper

  function read(page) {
    return JSON.parse(page.getElementById("data").textContent);
  }

  // --- colours: "@name" or "@name/opacity" under any key that ends in "color" or "colorscale"

  function theme() {
    const chosen = forced || root.dataset.theme;
    return data.themes[chosen === "dark" || (!chosen && darkness.matches) ? "dark" : "light"];
  }

  function colour(token, tokens) {
    if (typeof token !== "string" || token[0] !== "@") return token;
    const [name, opacity] = token.slice(1).split("/");
    const found = tokens[name];
    if (opacity === undefined) return found;
    const parts = [1, 3, 5].map((k) => parseInt(found.slice(k, k + 2), 16));
    return `rgba(${parts.join(",")},${opacity})`;
  }

  function painted(value, tokens, key = "") {
    if (/color(scale)?$/i.test(key)) {
      return Array.isArray(value) ? value.map((one) => colour(one, tokens)) : colour(value, tokens);
    }
    if (Array.isArray(value)) {
      return value.length && typeof value[0] === "object" ? value.map((one) => painted(one, tokens)) : value;
    }
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, one]) => [k, painted(one, tokens, k)]));
    }
    return value;
  }

  function merged(base, over) {
    const result = { ...base };
    for (const [key, value] of Object.entries(over)) {
      const both = value && typeof value === "object" && !Array.isArray(value) && result[key];
      result[key] = both ? merged(result[key], value) : value;
    }
    return result;
  }

  // --- charts

  const hidden = new Map(); // chart -> agents switched off
  const picked = new Map(); // chart -> the view chosen

  function draw(place) {
    const id = place.dataset.chart;
    const view = data.charts[id][picked.get(id) || 0];
    const tokens = theme();
    const narrow = place.clientWidth < NARROW;
    const off = hidden.get(id) || new Set();
    const layout = merged(
      {
        font: { family: FONT, size: narrow ? 12 : 13, color: tokens.ink },
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        showlegend: false,
        dragmode: window.matchMedia("(pointer: coarse)").matches ? false : "zoom",
        hoverlabel: { bgcolor: tokens.paper, bordercolor: tokens.line, font: { color: tokens.ink, family: FONT }, align: "left", namelength: -1 },
        autosize: true,
      },
      painted(narrow ? merged(view.layout, view.narrow) : view.layout, tokens),
    );
    const traces = painted(view.data, tokens).map((trace) => ({
      ...trace,
      visible: !(trace.legendgroup && off.has(trace.legendgroup)),
    }));
    if (narrow) {
      for (const trace of traces) {
        if (trace.colorbar) trace.colorbar = { ...trace.colorbar, title: { text: "" }, thickness: 8, xpad: 4 };
      }
    }
    place.dataset.narrow = narrow;
    const settings = { displayModeBar: false, responsive: false, showTips: false, doubleClick: "reset" };
    return window.Plotly.react(place, traces, layout, settings).then(() => {
      place.dataset.drawn = "true";
    });
  }

  function places() {
    return [...document.querySelectorAll("[data-chart]")];
  }

  let turn = 0;
  async function drawAll() {
    const mine = ++turn;
    for (const place of places()) {
      if (mine !== turn) return;
      await draw(place);
      await new Promise((next) => setTimeout(next)); // keys and clicks come first
    }
    root.dataset.ready = String(places().length);
  }

  function chartOf(element) {
    return element.closest("figure").querySelector("[data-chart]");
  }

  // --- sorting and files

  function compared(one, other) {
    if (one === null || other === null) return (one === null) - (other === null);
    if (typeof one === "number" && typeof other === "number") return one - other;
    return String(one).localeCompare(String(other), "en", { numeric: true });
  }

  function sort(button) {
    const heading = button.closest("th");
    const table = button.closest("table");
    const rows = data.tables[table.id].rows;
    const column = Number(button.dataset.sort);
    const way = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    for (const other of table.querySelectorAll("th")) other.setAttribute("aria-sort", "none");
    heading.setAttribute("aria-sort", way);
    const body = table.tBodies[0];
    const lines = [...body.rows].map((line) => [rows[Number(line.dataset.row)][column], line]);
    const missing = (pair) => (pair[0] === null ? 1 : 0);
    lines.sort((a, b) => missing(a) - missing(b) || compared(a[0], b[0]) * (way === "ascending" ? 1 : -1));
    body.append(...lines.map((pair) => pair[1]));
  }

  function csvCell(value) {
    if (value === null) return "";
    let text = String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text; // no formula
    return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  }

  function csv(table) {
    return [table.headers, ...table.rows].map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
  }

  function slug(text) {
    return text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "table";
  }

  function save(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  async function saveChart(id) {
    const place = document.querySelector(`[data-chart="${CSS.escape(id)}"]`);
    const url = await window.Plotly.toImage(place, { format: "svg", width: place.clientWidth, height: place.clientHeight });
    save(`${slug(id)}.svg`, "image/svg+xml", decodeURIComponent(url.slice(url.indexOf(",") + 1)));
  }

  // --- what readers do

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const { sort: column, csv: table, save: chart, toggle, themeChoice } = button.dataset;
    if (column !== undefined) sort(button);
    else if (table) save(`${slug(data.tables[table].name)}.csv`, "text/csv;charset=utf-8", "\ufeff" + csv(data.tables[table]));
    else if (chart) saveChart(chart);
    else if (toggle !== undefined) {
      const place = chartOf(button);
      const off = hidden.get(place.dataset.chart) || new Set();
      if (!off.delete(toggle)) off.add(toggle);
      hidden.set(place.dataset.chart, off);
      button.setAttribute("aria-pressed", String(!off.has(toggle)));
      draw(place);
    } else if (themeChoice) choose(themeChoice);
  });

  document.addEventListener("change", (event) => {
    const id = event.target.dataset.pick;
    if (id === undefined) return;
    picked.set(id, Number(event.target.value));
    draw(chartOf(event.target));
  });

  function choose(name) {
    if (name === "auto") delete root.dataset.theme;
    else root.dataset.theme = name;
    for (const button of document.querySelectorAll("[data-theme-choice]")) {
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === name));
    }
    drawAll();
  }

  darkness.addEventListener("change", drawAll);
  let waiting = 0;
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width || printing.matches) return;
    width = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 120);
  });

  // paper is white, and as wide as it is
  function toPaper(paper) {
    forced = paper ? "light" : null;
    if (paper) {
      root.dataset.screen = root.dataset.theme || "auto";
      root.dataset.theme = "light";
    } else if (root.dataset.screen) {
      const before = root.dataset.screen;
      delete root.dataset.screen;
      if (before === "auto") delete root.dataset.theme;
      else root.dataset.theme = before;
    }
    places().forEach(draw);
  }
  window.addEventListener("beforeprint", () => toPaper(true));
  window.addEventListener("afterprint", () => toPaper(false));

  // --- live: ask the server whether more runs are in, and take over the new page

  async function follow() {
    const status = () => document.getElementById("live");
    let version = null;
    for (;;) {
      try {
        const answer = await fetch("version", { cache: "no-store" });
        const now = await answer.json();
        if (version !== null && now.version !== version) {
          const page = new DOMParser().parseFromString(await (await fetch("./", { cache: "no-store" })).text(), "text/html");
          takeOver(page);
        }
        version = now.version;
        status().textContent = now.text;
      } catch {
        status().textContent = "The server has stopped; this is the last state it showed.";
      }
      await new Promise((next) => setTimeout(next, 1000));
    }
  }

  function takeOver(page) {
    const open = new Set([...document.querySelectorAll("details[open]")].map((one) => [...document.querySelectorAll("details")].indexOf(one)));
    const scroll = window.scrollY;
    data = read(page);
    document.querySelector("main").replaceWith(document.adoptNode(page.querySelector("main")));
    document.querySelector("nav").replaceWith(document.adoptNode(page.querySelector("nav")));
    document.querySelectorAll("details").forEach((one, k) => { one.open = open.has(k); });
    for (const [id, off] of hidden) {
      for (const button of document.querySelectorAll(`#${CSS.escape(id)} [data-toggle]`)) {
        button.setAttribute("aria-pressed", String(!off.has(button.dataset.toggle)));
      }
    }
    for (const [id, view] of picked) {
      const select = document.querySelector(`[data-pick="${CSS.escape(id)}"]`);
      if (select && view < select.options.length) select.value = String(view);
      else picked.delete(id);
    }
    window.scrollTo(0, scroll);
    drawAll();
  }

  drawAll();
  if (document.body.dataset.live) follow();
})();
