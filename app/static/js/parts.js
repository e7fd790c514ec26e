/* Parts of a page that htmx fetches: says that one has not arrived, in its place if that has data-missing (the
   element that holds the text), otherwise in a toast. What was shown there before is not true any more. */
"use strict";

(function () {
  function reasonOf({ xhr }) {
    const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
    const said = page.querySelector("[data-error] p:first-of-type");
    return said ? said.textContent.trim() : document.body.dataset.noAnswer;
  }

  function onFailure({ detail }) {
    const text = reasonOf(detail);
    const place = detail.target;
    if (!place || !place.dataset.missing) {
      document.dispatchEvent(new CustomEvent("toast", { detail: { text } }));
      return;
    }
    const note = document.createElement(place.dataset.missing);
    note.className = "note";
    note.setAttribute("role", "presentation");
    note.dataset.note = "";
    note.textContent = text;
    place.replaceChildren(note);
    place.dispatchEvent(new CustomEvent("part-missing", { bubbles: true }));
  }

  document.addEventListener("htmx:responseError", onFailure);
  document.addEventListener("htmx:sendError", onFailure);
})();
