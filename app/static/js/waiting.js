/* Forms that are sent and answered after a while: shows that it is under way, and sends no form twice. */
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
