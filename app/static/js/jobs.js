/* Job list: selecting all rows or a range, and the live count of current runs. */
"use strict";

(function () {
  const PERIOD_MS = 5000;
  const boxes = Array.from(document.querySelectorAll("[data-tick]"));
  const all = document.querySelector("[data-tick-all]");
  const matching = document.querySelector("[data-tick-matching]");
  const words = document.querySelector("[data-ticked]");
  let last = -1;

  function update() {
    const ticked = boxes.filter((box) => box.checked).length;
    all.checked = ticked === boxes.length;
    all.indeterminate = ticked > 0 && ticked < boxes.length;
    words.textContent = words.dataset.ticked.replace("#", ticked);
    const isEverything = matching !== null && matching.checked;
    for (const box of [all, ...boxes]) box.disabled = isEverything;
    words.hidden = isEverything;
    for (const button of document.querySelectorAll("#bulk button")) button.disabled = ticked === 0 && !isEverything;
  }

  function onTick(event) {
    const at = boxes.indexOf(event.currentTarget);
    if (event.shiftKey && last >= 0) {
      const [low, high] = [Math.min(at, last), Math.max(at, last)];
      for (const box of boxes.slice(low, high + 1)) box.checked = event.currentTarget.checked;
    }
    last = at;
    update();
  }

  async function refresh(table) {
    const shown = Array.from(document.querySelectorAll("[data-running]"));
    const query = new URLSearchParams(shown.map((place) => ["id", place.dataset.running]));
    const answer = await fetch(`${table.dataset.runningFrom}?${query}`, { headers: { Accept: "application/json", "X-Refresh": "auto" } });
    if (!answer.ok || answer.redirected) return;
    const counts = await answer.json();
    for (const place of shown) {
      const count = counts[place.dataset.running] || 0;
      place.hidden = count === 0;
      place.textContent = place.dataset.runningText.replace("#", count);
    }
  }

  if (all && boxes.length) {
    all.hidden = false;
    all.addEventListener("change", () => {
      for (const box of boxes) box.checked = all.checked;
      update();
    });
    for (const box of boxes) box.addEventListener("click", onTick);
    if (matching) matching.addEventListener("change", update);
    window.addEventListener("pageshow", update);
    update();
  }
  const table = document.querySelector("[data-running-from]");
  if (table) {
    window.setInterval(() => {
      if (!document.hidden) refresh(table).catch(() => {});
    }, PERIOD_MS);
  }
})();
