/* Job list: the bar of bulk actions appears with a selection; shift-click selects a range. Rows come and go, and with
   them the table and the bar. */
"use strict";

(function () {
  let last = null;

  const boxes = () => Array.from(document.querySelectorAll("[data-tick]"));
  const matching = () => document.querySelector("[data-tick-matching]");

  function update() {
    const bar = document.getElementById("bulk");
    if (!bar) return;
    const all = document.querySelector("[data-tick-all]");
    const words = bar.querySelector("[data-ticked]");
    const shown = boxes();
    const ticked = shown.filter((box) => box.checked).length;
    const isEverything = matching() !== null && matching().checked;
    const isAny = ticked > 0 || isEverything;
    all.hidden = false;
    bar.querySelector("[data-tick-none]").hidden = false;
    all.checked = isEverything || (ticked > 0 && ticked === shown.length);
    all.indeterminate = !isEverything && ticked > 0 && ticked < shown.length;
    for (const box of [all, ...shown]) box.disabled = isEverything;
    words.textContent = words.dataset.ticked.replace("#", isEverything ? matching().dataset.tickMatching : ticked);
    bar.classList.toggle("some", isAny);
  }

  function tickAll(isTicked) {
    if (matching()) matching().checked = false;
    for (const box of boxes()) box.checked = isTicked;
    update();
  }

  function onTick(event, box) {
    const shown = boxes();
    const ends = [shown.indexOf(box), shown.indexOf(last)].sort((a, b) => a - b);
    if (event.shiftKey && ends[0] >= 0) {
      for (const each of shown.slice(ends[0], ends[1] + 1)) each.checked = box.checked;
    }
    last = box;
    update();
  }

  function onClick(event) {
    const box = event.target;
    if (!(box instanceof Element)) return;
    if (box.matches("[data-tick]")) onTick(event, box);
    else if (box.matches("[data-tick-all]")) tickAll(box.checked);
    else if (box.matches("[data-tick-matching]")) update();
    else if (box.closest("[data-collapse]")) fold(box.closest("[data-collapse]"));
    else if (box.closest("[data-tick-none]")) {
      tickAll(false);
      document.querySelector("[data-tick-all]").focus();
    }
  }

  /* Groups fold; which ones is kept in the browser. */
  const FOLDED = "jobs-folded";
  const folded = () => new Set(JSON.parse(localStorage.getItem(FOLDED) || "[]"));

  function showGroups() {
    const ids = folded();
    let isFolded = false;
    for (const row of document.querySelectorAll(".grid.jobs.grouped tbody tr")) {
      const button = row.querySelector("[data-collapse]");
      if (button) {
        button.hidden = false;
        isFolded = ids.has(button.dataset.collapse);
        button.setAttribute("aria-expanded", String(!isFolded));
      } else row.hidden = isFolded;
    }
  }

  function fold(button) {
    const ids = folded();
    if (!ids.delete(button.dataset.collapse)) ids.add(button.dataset.collapse);
    localStorage.setItem(FOLDED, JSON.stringify([...ids]));
    showGroups();
  }

  document.addEventListener("click", onClick);
  document.addEventListener("live-refreshed", update);
  document.addEventListener("live-refreshed", showGroups);
  showGroups();
  window.addEventListener("pageshow", update);
  update();
})();
