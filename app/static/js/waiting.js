/* Slow forms: shows progress and prevents double submission. */
"use strict";

(function () {
  function show(form, isWaiting) {
    for (const part of form.querySelectorAll("[data-waiting]")) part.hidden = !isWaiting;
    for (const button of form.querySelectorAll("button")) button.disabled = isWaiting;
  }

  for (const form of document.querySelectorAll("form[data-waits]")) {
    /* later, because the form sends the name of its button only if that is not disabled */
    form.addEventListener("submit", () => window.setTimeout(show, 0, form, true));
  }
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-waits]")) show(form, false);
  });
})();
