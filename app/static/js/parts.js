/* Parts of a page that htmx fetches: says that one has not arrived, in its place if that has data-missing (the
   element that holds the text), otherwise in a toast. What was shown there before is not true any more.
   After the end of the login the forms of any page can be sent once there is another one. */
"use strict";

(function () {
  let hasEnded = false;
  let isWaiting = false;

  function reasonOf({ xhr }) {
    if (xhr.status === 401) return document.body.dataset.loginEnded;
    const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
    const said = page.querySelector("[data-error] p:first-of-type");
    return said ? said.textContent.trim() : document.body.dataset.noAnswer;
  }

  const toast = (text) => document.dispatchEvent(new CustomEvent("toast", { detail: { text } }));

  function onFailure({ detail }) {
    const text = reasonOf(detail);
    if (detail.xhr.status === 401) hasEnded = true;
    const place = detail.target;
    if (!place || !place.dataset.missing) {
      toast(text);
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

  /* Back from a login in another tab: the forms get its token. */
  async function renew() {
    if (!hasEnded) return;
    const answer = await fetch(window.location.href, { headers: { Accept: "text/html", "X-Refresh": "auto" } });
    if (answer.redirected) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[name=csrf_token]");
    for (const field of document.querySelectorAll("[name=csrf_token]")) field.value = fresh.value;
    hasEnded = false;
  }

  /* A form that is sent after the end of the login waits for the token; without another login it stays. */
  async function onSubmit(event) {
    const { target: form, submitter } = event;
    if (!hasEnded || form.method !== "post") return;
    event.preventDefault();
    event.stopPropagation();
    if (isWaiting) return; // a double click
    isWaiting = true;
    const isAnswered = await renew().then(() => true, () => false);
    isWaiting = false;
    if (!hasEnded) form.requestSubmit(submitter);
    else toast(isAnswered ? document.body.dataset.loginEnded : document.body.dataset.noAnswer);
  }

  document.addEventListener("htmx:responseError", onFailure);
  document.addEventListener("htmx:sendError", onFailure);
  document.addEventListener("login-ended", () => (hasEnded = true));
  document.addEventListener("submit", onSubmit, true);
  document.addEventListener("htmx:afterRequest", ({ detail }) => detail.successful && renew().catch(() => {}));
  window.addEventListener("focus", () => renew().catch(() => {}));
})();
