/* Favourite stars without a page reload; without scripts the button submits the form. */
"use strict";

(function () {
  const form = document.getElementById("star");
  if (!form) return;

  function show(button, starred) {
    button.name = starred ? "remove" : "add";
    button.classList.toggle("on", starred);
    button.setAttribute("aria-pressed", String(starred));
    button.querySelector(".bi").className = starred ? "bi bi-star-fill" : "bi bi-star";
  }

  async function send(event) {
    const button = event.submitter;
    if (!button || !button.matches("[data-star]")) return;
    event.preventDefault();
    const starred = button.name === "add";
    const fields = new URLSearchParams([...new FormData(form), [button.name, button.value]]);
    const answer = await fetch(form.action, { method: "POST", body: fields, headers: { Accept: "application/json" } }).catch(() => null);
    if (answer && answer.redirected) {
      window.location.reload();
      return;
    }
    if (answer && answer.status === 204) {
      show(button, starred);
      return;
    }
    const { msg } = answer ? await answer.json().catch(() => ({})) : {};
    document.dispatchEvent(new CustomEvent("toast", { detail: { text: msg || document.body.dataset.noAnswer } }));
  }

  form.addEventListener("submit", send);
})();
