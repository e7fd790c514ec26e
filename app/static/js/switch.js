/* Switches of schedules: act at once, in place. Without scripts the button submits its form.
   The answer is {"on": …, "toast": HTML}, or {"msg": why it was refused}; any other is not the console's. */
"use strict";

(function () {
  const words = document.getElementById("switch");
  const jobOf = (address) => /\/jobinfo\/(\d+)\/(start|stop)$/.exec(new URL(address).pathname);

  function show(button, isOn) {
    const act = isOn ? words.dataset.switchOff : words.dataset.switchOn;
    button.formAction = button.formAction.replace(/(start|stop)$/, isOn ? "stop" : "start");
    if (button.getAttribute("role") === "switch") {
      button.setAttribute("aria-checked", String(isOn));
      button.title = act;
      button.firstElementChild.textContent = isOn ? words.dataset.on : words.dataset.off;
    } else { /* The entry of a menu. */
      button.firstElementChild.className = isOn ? "bi bi-toggle-off" : "bi bi-toggle-on";
      button.lastElementChild.textContent = act;
    }
  }

  function showAll(jobId, isOn) {
    for (const button of document.querySelectorAll(`[data-switch="${jobId}"]`)) show(button, isOn);
  }

  function notify(detail) {
    document.dispatchEvent(new CustomEvent("toast", { detail }));
  }

  async function send(event) {
    const address = event.submitter && event.submitter.hasAttribute("formaction") ? event.submitter.formAction : event.target.action;
    const job = event.target.matches("#switch, [data-toast] form") && jobOf(address);
    if (!job) return;
    event.preventDefault();
    event.submitter?.closest("[popover]")?.hidePopover();
    const [, jobId, act] = job;
    showAll(jobId, act === "start");
    const answer = await fetch(address, { method: "POST", body: new URLSearchParams(new FormData(event.target)), headers: { Accept: "application/json" } }).catch(() => null);
    if (answer && answer.redirected) {
      window.location.reload();
      return;
    }
    const { on, toast, msg } = answer ? await answer.json().catch(() => ({})) : {};
    showAll(jobId, toast ? on : act !== "start");
    const old = event.target.closest("[data-toast]");
    const hadFocus = old !== null && old.contains(document.activeElement);
    if (old) old.remove();
    if (hadFocus) document.querySelector(`[data-switch="${jobId}"]`)?.focus();
    notify(toast ? { html: toast } : { text: msg || document.body.dataset.noAnswer });
    document.dispatchEvent(new Event("live-wanted"));
  }

  if (words) document.addEventListener("submit", send);
})();
