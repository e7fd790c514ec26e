/* Rows of bars: one stop of the Tab key a row, the arrow keys, Home and End within it. Without scripts every bar is a stop. */
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
    const goal = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: links.length - 1 }[event.key];
    if (goal === undefined || at < 0) return;
    event.preventDefault();
    const link = stopAt(links, Math.min(links.length - 1, Math.max(0, goal)));
    link.focus();
  }

  document.addEventListener("keydown", onKey);
  document.addEventListener("live-refreshed", gather);
  gather();
})();
