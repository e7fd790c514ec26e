/* Keys of rows of jobs and runs: j and k move, Enter opens (the row's link has the focus), x ticks, . opens the menu,
   s switches the schedule, r runs the job once, or a run again. Ignored in fields, menus and dialogs; without a row in
   focus, r stays Refresh. */
"use strict";

(function () {
  const ROW = '.grid.jobs [data-part^="job-"], .grid.runs [data-part^="run-"]';
  const rows = () => Array.from(document.querySelectorAll(ROW)).filter((row) => row.checkVisibility());
  const link = (row) => row.querySelector(".name a, .run-cell a");
  const WAIT_MS = 1200; /* after g, a letter names a page: js/keys.js */
  let last = "";
  let wentAt = 0;

  function isTyping(target) {
    if (!(target instanceof Element)) return false;
    if (target.matches("[data-tick]")) return false; /* a ticked row goes on being a row */
    return target.closest("input, textarea, select, [contenteditable], dialog[open], [popover], .cm-editor") !== null;
  }

  function move(step) {
    const all = rows();
    const focused = document.activeElement ? document.activeElement.closest(ROW) : null;
    const at = all.indexOf(focused || document.querySelector(`[data-part="${last}"]`));
    const next = all[at < 0 ? 0 : Math.min(all.length - 1, Math.max(0, at + step))];
    if (!next) return false;
    last = next.dataset.part;
    link(next).focus();
    next.scrollIntoView({ block: "nearest" });
    return true;
  }

  const runOf = (row) => row.querySelector('.run-now, .menu [data-dialog][href*="/run?"]');
  const acts = {
    x: (row) => row.querySelector("[data-tick]"),
    ".": (row) => row.querySelector("[popovertarget]"),
    s: (row) => row.querySelector("button.switch"),
    r: runOf,
    R: runOf,
  };

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
    const isPage = Date.now() - wentAt < WAIT_MS;
    wentAt = event.key === "g" ? Date.now() : 0;
    if (isPage) return;
    if (event.key === "j" || event.key === "k") {
      if (move(event.key === "j" ? 1 : -1)) event.preventDefault();
      return;
    }
    const row = event.target instanceof Element ? event.target.closest(ROW) : null;
    const control = row && Object.hasOwn(acts, event.key) ? acts[event.key](row) : null;
    if (!control) return;
    event.preventDefault();
    control.click();
  }

  /* Before js/keys.js, which reloads the page for r, and after which g j would move. */
  document.addEventListener("keydown", onKey, true);
})();
