/* Unsaved changes: a form with data-guard asks before its page is left or its dialog closed. */
"use strict";

(function () {
  let isSending = false;

  function differs(field) {
    if (!field.name || field.type === "hidden" || field.disabled) return false;
    if (field instanceof HTMLSelectElement) {
      const options = Array.from(field.options);
      const first = Math.max(0, options.findIndex((option) => option.defaultSelected));
      return options.length > 0 && field.selectedIndex !== first;
    }
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.type === "file") return field.files.length > 0;
    return "defaultValue" in field && field.value !== field.defaultValue;
  }

  function isTyped(form) {
    return form.method === "post" && Array.from(form.elements).some(differs);
  }

  /* The question: discard the changes, or keep editing. */
  function ask(sheet) {
    if (sheet.querySelector("[data-unsaved]")) return;
    const words = document.body.dataset;
    const bar = document.createElement("div");
    bar.className = "notice warning unsaved";
    bar.dataset.unsaved = "";
    bar.setAttribute("role", "alertdialog");
    bar.setAttribute("aria-label", words.unsaved);
    const text = document.createElement("div");
    text.textContent = words.unsaved;
    const discard = document.createElement("button");
    discard.type = "button";
    discard.className = "btn btn-danger btn-sm";
    discard.textContent = words.discard;
    discard.addEventListener("click", () => sheet.close());
    const stay = document.createElement("button");
    stay.type = "button";
    stay.className = "btn btn-default btn-sm";
    stay.textContent = words.stay;
    stay.addEventListener("click", () => {
      bar.remove();
      const field = sheet.querySelector("form :is(input:not([type=hidden]), select, textarea)");
      if (field) field.focus();
    });
    bar.append(text, stay, discard);
    sheet.querySelector(".sheet-head").after(bar);
    stay.focus();
  }

  document.addEventListener("sheet-closing", (event) => {
    if (!Array.from(event.target.querySelectorAll("form")).some(isTyped)) return;
    event.preventDefault();
    ask(event.target);
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches("form[data-guard]")) isSending = true;
  });
  window.addEventListener("beforeunload", (event) => {
    if (!isSending && Array.from(document.querySelectorAll("form[data-guard]")).some(isTyped)) event.preventDefault();
  });
  window.addEventListener("pageshow", () => (isSending = false));
})();
