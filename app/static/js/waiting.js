/* Slow forms: shows progress and prevents double submission. */
"use strict";

(function () {
  function show(form, isWaiting) {
    for (const part of form.querySelectorAll("[data-waiting]")) part.hidden = !isWaiting;
    for (const button of form.querySelectorAll("button")) button.disabled = isWaiting;
  }

  for (const form of document.querySelectorAll("form[data-waits]")) form.addEventListener("submit", () => show(form, true));
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-waits]")) show(form, false);
  });
})();
