/* Form of a backfill: the list of what it would run is fetched anew while the form is edited. Without an answer the
   list goes, and with it the button: what it showed may not hold any more. */
"use strict";

(function () {
  const PAUSE_MS = 300;
  const form = document.querySelector("form[data-backfill]");
  if (!form) return;
  const place = form.querySelector("[data-plan]");
  let timer = 0;
  let number = 0;
  const entered = () => new URLSearchParams(new FormData(form)).toString();
  let listed = entered();

  async function renew() {
    const own = ++number;
    const body = new URLSearchParams(listed);
    const headers = { "HX-Request": "true", Accept: "text/html" };
    const answer = await fetch(form.dataset.backfill, { method: "POST", body, headers }).catch(() => null);
    const markup = answer && answer.ok ? await answer.text() : "";
    if (own !== number) return; /* a later one is on its way */
    const open = new Set([...place.querySelectorAll("details[open]")].map((day) => day.dataset.day));
    place.innerHTML = markup;
    for (const day of place.querySelectorAll("details")) day.open ||= open.has(day.dataset.day);
    place.removeAttribute("aria-busy");
    if (!markup) document.dispatchEvent(new CustomEvent("toast", { detail: { text: document.body.dataset.noAnswer } }));
  }

  function later() {
    const now = entered();
    if (now === listed) return; /* the field is only left, perhaps for the button */
    listed = now;
    for (const error of form.querySelectorAll(".invalid-feedback, .notice[role=alert]")) error.remove();
    for (const field of form.querySelectorAll(".is-invalid")) field.classList.remove("is-invalid");
    for (const button of place.querySelectorAll("button")) button.disabled = true;
    place.setAttribute("aria-busy", "true");
    window.clearTimeout(timer);
    timer = window.setTimeout(renew, PAUSE_MS);
  }

  function choose(event) {
    const chip = event.target.closest("[data-from]");
    if (!chip) return;
    event.preventDefault();
    form.elements.from.value = chip.dataset.from;
    form.elements.to.value = chip.dataset.to;
    mark(chip);
    later();
  }

  function mark(chosen) {
    for (const chip of form.querySelectorAll("[data-from]")) chip.toggleAttribute("aria-current", chip === chosen);
    if (chosen) chosen.setAttribute("aria-current", "true");
  }

  for (const name of ["input", "change"]) {
    form.addEventListener(name, (event) => {
      if (event.target.matches("[name=from], [name=to]")) mark(null);
      later();
    });
  }
  form.addEventListener("click", choose);
})();
