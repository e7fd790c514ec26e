/* Job form: an invalid schedule is marked at its input while it is typed; one that is missing keeps the server's mark.
   Filling in placeholders is offered as soon as there is one. The only handler of an executor is filled in. */
"use strict";

(function () {
  const offer = document.querySelector("[data-fill-offer]");
  if (!offer) return;
  const box = offer.querySelector("input");

  function update() {
    const texts = [...document.querySelectorAll("#executor_param, [data-parameter-fields] input")];
    offer.hidden = !box.checked && !texts.some((text) => text.value.includes("${"));
  }

  offer.closest("form").addEventListener("input", update);
  document.addEventListener("htmx:afterSwap", update);
  update();
})();

(function () {
  const place = document.getElementById("schedule-preview");
  if (!place) return;

  function mark(event) {
    if (event.target !== place) return;
    const isBad = place.querySelector(".preview.bad") !== null;
    for (const field of document.querySelectorAll("#cron, #rate_s, #delay_s, #at")) {
      const isWrong = isBad && field.offsetParent !== null;
      const isMarked = isWrong || (field.value === "" && document.getElementById(`${field.id}-error`) !== null);
      field.classList.toggle("is-invalid", isMarked);
      field.setAttribute("aria-invalid", String(isMarked));
      const others = (field.getAttribute("aria-describedby") || "").split(" ").filter((id) => id && id !== place.id);
      field.setAttribute("aria-describedby", [...others, ...(isWrong ? [place.id] : [])].join(" "));
    }
  }

  for (const name of ["htmx:afterSwap", "part-missing"]) document.addEventListener(name, mark);
})();

(function () {
  const handlers = document.getElementById("handlers");
  const input = document.getElementById("executor_handler");
  if (!handlers || !input) return;
  let filledIn = input.hasAttribute("data-filled-in") ? input.value : "";

  function fillIn(event) {
    if (event.target !== handlers || input.value !== filledIn) return;
    const only = handlers.querySelector("[data-only]");
    filledIn = only ? only.value : "";
    if (input.value === filledIn) return;
    input.value = filledIn;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  }

  document.addEventListener("htmx:afterSwap", fillIn);
})();
