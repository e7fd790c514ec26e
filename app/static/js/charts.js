/* Charts: what all of them share (macros/charts.html). A card with the text of a bar, for mouse, touch and focus; one
   tab stop per row of bars, arrow keys, Home and End within it (data-bars="7": columns of seven, so that left and right
   go from column to column); a legend whose entries hide what they name. Without scripts every bar is a tab stop and
   has a title. */
"use strict";

(function () {
  const SEPARATOR = " · ";
  /* pixels: from the bar to its card, from the card to the edge of the window, lowest part of a bar */
  const [GAP, EDGE, LEAST] = [8, 8, 2];
  const [STEPS, LINES] = [[1, 2, 5], 4];
  /* most bars with whole numbers */
  const SHORT = 8;

  /* ---- rows of bars ---- */

  const barAt = (node) => (node.closest ? node.closest("[data-bars] a") : null);
  const isShown = (element) => element.style.display !== "none";
  const linksOf = (row) => Array.from(row.querySelectorAll("a")).filter(isShown);

  function stopAt(links, index) {
    const only = links.at(index);
    for (const link of links) link.setAttribute("tabindex", link === only ? "0" : "-1");
    return only;
  }

  function onKey(event) {
    if (event.key === "Escape") hide();
    const row = event.target.closest ? event.target.closest("[data-bars]") : null;
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
    const links = linksOf(row);
    const at = links.indexOf(event.target);
    const column = Number(row.dataset.bars) || 1;
    const within = column > 1 ? { ArrowUp: at - 1, ArrowDown: at + 1 } : {};
    const goal = { ArrowLeft: at - column, ArrowRight: at + column, Home: 0, End: links.length - 1, ...within }[event.key];
    if (goal === undefined || at < 0) return;
    event.preventDefault();
    stopAt(links, Math.min(links.length - 1, Math.max(0, goal))).focus();
  }

  /* ---- card ---- */

  const card = document.createElement("div");
  card.className = "chart-card";
  card.hidden = true;
  card.setAttribute("aria-hidden", "true");
  document.body.append(card);
  let current = null;

  /* the text of a bar, from its title, which would be a second card */
  function textOf(link) {
    const title = link.querySelector("title");
    const text = title ? title.textContent : link.getAttribute("title");
    if (title) title.remove();
    link.removeAttribute("title");
    if (text) link.setAttribute("aria-label", text);
    return link.getAttribute("aria-label");
  }

  function show(link) {
    current = link;
    const lines = textOf(link).split(SEPARATOR).map((text, index) => {
      const line = document.createElement(index ? "span" : "b");
      line.textContent = text;
      return line;
    });
    card.replaceChildren(...lines);
    card.hidden = false;
    place();
  }

  function hide() {
    current = null;
    card.hidden = true;
  }

  /* above the bar, or below it where there is no room */
  function place() {
    if (!current) return;
    if (!current.isConnected) return void hide();
    const inside = Array.from(current.querySelectorAll(":not(.hit, .tick, title)")).filter(isShown);
    const boxes = (inside.length ? inside : [current]).map((part) => part.getBoundingClientRect());
    const [top, bottom] = [Math.min(...boxes.map((box) => box.top)), Math.max(...boxes.map((box) => box.bottom))];
    const [left, right] = [Math.min(...boxes.map((box) => box.left)), Math.max(...boxes.map((box) => box.right))];
    const { width, height } = card.getBoundingClientRect();
    const edge = document.documentElement.clientWidth - width - EDGE;
    card.style.left = `${Math.max(EDGE, Math.min(edge, (left + right - width) / 2))}px`;
    card.style.top = `${top - height - GAP < EDGE ? bottom + GAP : top - height - GAP}px`;
  }

  function onOver({ target, pointerType }) {
    const link = barAt(target);
    if (pointerType === "touch" || link === current) return;
    if (link) show(link);
    else if (current && !current.matches(":focus-visible")) hide();
  }

  function onFocus({ target }) {
    const link = barAt(target);
    if (link && link.matches(":focus-visible")) show(link);
    else if (current) hide();
  }

  /* a finger shows the card first and then follows the link */
  function onClick(event) {
    if (event.pointerType !== "touch") return;
    const link = barAt(event.target);
    if (!link) return void hide();
    if (link === current) return;
    event.preventDefault();
    show(link);
  }

  /* ---- legend ---- */

  /* chart -> kinds that are hidden */
  const hidden = new WeakMap();

  function filter(chart) {
    const kinds = hidden.get(chart);
    for (const button of chart.querySelectorAll("[data-legend] button")) {
      const isOn = !kinds.has(button.value);
      button.setAttribute("aria-pressed", String(isOn));
      for (const part of chart.querySelectorAll(`[data-bars] .${button.value}`)) part.style.display = isOn ? "" : "none";
    }
    for (const link of chart.querySelectorAll("[data-bars] a")) {
      const parts = Array.from(link.querySelectorAll(".bar, .mark"));
      link.style.display = parts.length && !parts.some(isShown) ? "none" : "";
    }
    for (const svg of chart.querySelectorAll("[data-top]")) {
      if (kinds.size || "filtered" in svg.dataset) restack(svg, kinds.size > 0);
    }
  }

  const tenths = (value) => Math.round(10 * value) / 10;

  function stepOf(highest) {
    for (let size = 1; ; size *= 10) {
      for (const step of STEPS) if (highest <= LINES * step * size) return step * size;
    }
  }

  /* the parts that are left stand on the base line and are as high as there is room */
  function restack(svg, isFiltered) {
    const [area, ground] = [Number(svg.dataset.area), Number(svg.dataset.ground)];
    const bars = linksOf(svg).map((link) => [link, Array.from(link.querySelectorAll(".bar")).filter(isShown)]);
    const sums = bars.map(([, parts]) => parts.reduce((sum, part) => sum + Number(part.dataset.n), 0));
    const highest = Math.max(0, ...sums);
    svg.dataset.filtered = "";
    if (!highest) return;
    const step = stepOf(highest);
    const top = Math.max(highest, step);
    const numbers = new Intl.NumberFormat(document.documentElement.lang, { notation: bars.length > SHORT ? "compact" : "standard" });
    bars.forEach(([link, parts], index) => {
      let y = ground;
      for (const part of parts) {
        const height = Math.max(LEAST, (area * Number(part.dataset.n)) / top);
        y -= height;
        part.setAttribute("y", tenths(y));
        part.setAttribute("height", tenths(height));
      }
      const above = link.querySelector(".above");
      if (!above) return;
      above.dataset.all ||= above.textContent;
      above.textContent = isFiltered ? numbers.format(sums[index]) : above.dataset.all;
      above.setAttribute("y", y - 5);
    });
    const labels = svg.parentElement.querySelectorAll(".scale .at");
    svg.querySelectorAll(".rule").forEach((line, index) => {
      const at = step * (index + 1);
      const y = ground - (area * at) / top;
      line.setAttribute("y1", y);
      line.setAttribute("y2", y);
      labels[index].setAttribute("y", y + 4);
      labels[index].textContent = numbers.format(at);
      line.style.display = labels[index].style.display = at > top ? "none" : "";
    });
  }

  function onLegend({ target }) {
    const button = target.closest ? target.closest("[data-legend] button") : null;
    if (!button) return;
    const chart = button.closest("[data-chart]");
    const kinds = hidden.get(chart);
    if (!kinds.delete(button.value)) kinds.add(button.value);
    refresh();
  }

  function refresh() {
    for (const chart of document.querySelectorAll("[data-chart]")) filter(chart);
    for (const row of document.querySelectorAll("[data-bars]")) {
      if (!row.contains(document.activeElement)) stopAt(linksOf(row), -1);
    }
    if (current) show(current);
    place();
  }

  document.addEventListener("keydown", onKey);
  document.addEventListener("pointerover", onOver);
  document.addEventListener("pointerleave", ({ pointerType }) => pointerType !== "touch" && hide());
  document.addEventListener("focusin", onFocus);
  document.addEventListener("focusout", () => current && hide());
  document.addEventListener("click", onClick);
  document.addEventListener("click", onLegend);
  document.addEventListener("scroll", place, { capture: true, passive: true });
  document.addEventListener("live-refreshed", refresh);
  for (const chart of document.querySelectorAll("[data-chart]")) hidden.set(chart, new Set());
  refresh();
})();
