/* Job list: the bar of bulk actions appears with a selection; shift-click selects a range. Rows come and go. */
"use strict";

(function () {
  const bar = document.getElementById("bulk");
  if (!bar) return;
  const all = document.querySelector("[data-tick-all]");
  const none = bar.querySelector("[data-tick-none]");
  const matching = bar.querySelector("[data-tick-matching]");
  const words = bar.querySelector("[data-ticked]");
  let last = null;

  const boxes = () => Array.from(document.querySelectorAll("[data-tick]"));

  function update() {
    const shown = boxes();
    const ticked = shown.filter((box) => box.checked).length;
    const isEverything = matching !== null && matching.checked;
    all.checked = isEverything || (ticked > 0 && ticked === shown.length);
    all.indeterminate = !isEverything && ticked > 0 && ticked < shown.length;
    for (const box of [all, ...shown]) box.disabled = isEverything;
    words.textContent = words.dataset.ticked.replace("#", isEverything ? matching.dataset.tickMatching : ticked);
    bar.classList.toggle("some", ticked > 0 || isEverything);
  }

  function tickAll(isTicked) {
    if (matching) matching.checked = false;
    for (const box of boxes()) box.checked = isTicked;
    update();
  }

  function onTick(event) {
    const box = event.target;
    if (!(box instanceof Element) || !box.matches("[data-tick]")) return;
    const shown = boxes();
    const ends = [shown.indexOf(box), shown.indexOf(last)].sort((a, b) => a - b);
    if (event.shiftKey && ends[0] >= 0) {
      for (const each of shown.slice(ends[0], ends[1] + 1)) each.checked = box.checked;
    }
    last = box;
    update();
  }

  all.hidden = false;
  none.hidden = false;
  all.addEventListener("change", () => tickAll(all.checked));
  none.addEventListener("click", () => {
    tickAll(false);
    all.focus();
  });
  if (matching) matching.addEventListener("change", update);
  document.addEventListener("click", onTick);
  document.addEventListener("live-refreshed", update);
  window.addEventListener("pageshow", update);
  update();
})();
