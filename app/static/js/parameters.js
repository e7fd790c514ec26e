/* Parameter of a run or of a job: fields of a typed handler or the text; what is not shown is disabled, so it is not sent. */

function show(place, isFields) {
  const fields = place.querySelector("[data-parameter-fields]");
  const text = place.querySelector("[data-parameter-text]");
  const button = place.querySelector("[data-parameter-switch]");
  fields.hidden = fields.disabled = !isFields;
  text.hidden = isFields;
  text.querySelector("textarea").disabled = isFields;
  button.hidden = false;
  button.textContent = isFields ? button.dataset.textRaw : button.dataset.textFields;
}

export function start(root) {
  for (const place of root.querySelectorAll("[data-parameters]")) {
    if ("started" in place.dataset) continue;
    place.dataset.started = "";
    const fields = place.querySelector("[data-parameter-fields]");
    show(place, "startsWithFields" in place.dataset);
    place.querySelector("[data-parameter-switch]").addEventListener("click", () => {
      show(place, fields.hidden);
      const first = place.querySelector("input:not([type=hidden], :disabled), select:not(:disabled), textarea:not(:disabled)");
      if (first) first.focus();
    });
    /* a parameter used before is a text */
    place.closest("form").addEventListener("click", (event) => {
      if (event.target.closest("[data-fill]")) show(place, false);
    });
  }
}

start(document);
document.addEventListener("htmx:load", (event) => start(event.target));
