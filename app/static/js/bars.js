/* Bars: one tab stop per row; arrow keys, Home and End move within it. Without scripts every bar is a tab stop.
   data-bars="7": columns of seven, so that left and right go from column to column. */
"use strict";

(function () {
  function linksOf(row) {
    return Array.from(row.querySelectorAll("a"));
  }

  function gather() {
    for (const row of document.querySelectorAll("[data-bars]")) {
      if (!row.contains(document.activeElement)) stopAt(linksOf(row), -1);
    }
  }

  function stopAt(links, index) {
    const only = links.at(index);
    for (const link of links) link.setAttribute("tabindex", link === only ? "0" : "-1");
    return only;
  }

  function onKey(event) {
    const row = event.target.closest ? event.target.closest("[data-bars]") : null;
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
    const links = linksOf(row);
    const at = links.indexOf(event.target);
    const column = Number(row.dataset.bars) || 1;
    const within = column > 1 ? { ArrowUp: at - 1, ArrowDown: at + 1 } : {};
    const goal = { ArrowLeft: at - column, ArrowRight: at + column, Home: 0, End: links.length - 1, ...within }[event.key];
    if (goal === undefined || at < 0) return;
    event.preventDefault();
    const link = stopAt(links, Math.min(links.length - 1, Math.max(0, goal)));
    link.focus();
  }

  document.addEventListener("keydown", onKey);
  document.addEventListener("live-refreshed", gather);
  gather();
})();
