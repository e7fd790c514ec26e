/* Runs the saved code and shows that run below it. What shows runs is loaded with the first one. */
import { start as startSplit } from "./split.js";

const KEY_BYTES = 16;
const ROWS_MAX = 6;
const form = document.querySelector("[data-try]");
const note = document.querySelector("[data-try-note]");
const place = document.querySelector("[data-try-run]");
const link = document.querySelector("[data-run-page-link]");

/* Lets the form, once its run is shown, make another one. */
function renewKey() {
  const bytes = window.crypto.getRandomValues(new Uint8Array(KEY_BYTES));
  form.elements.form_key.value = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/* What the page of the run says of the form: that it was sent before, for this run, and has made no other. */
function toldBy({ page }) {
  const notice = page.querySelector("[data-toasts] span");
  return notice ? notice.textContent.trim() : "";
}

function unlock(button) {
  button.disabled = false;
  if (document.activeElement === document.body) button.focus();
}

async function run(button) {
  const isChanged = document.querySelector("[data-glue]").hasAttribute("data-is-changed");
  note.textContent = isChanged ? form.dataset.textUnsaved : "";
  button.disabled = true; /* a second click runs nothing */
  let sheet;
  try {
    sheet = await import("./run-sheet.js");
    await sheet.runOnce(form, (found) => {
      unlock(button);
      link.href = sheet.fill(place, found);
      link.textContent = form.dataset.textOpen;
      if (toldBy(found)) note.textContent = toldBy(found);
    });
    renewKey();
  } catch (error) {
    unlock(button);
    if (sheet) sheet.explain(note, error, form.dataset);
    else note.textContent = form.dataset.textFailed;
  }
}

/* Lets the field grow with its lines, where the style sheet does not. */
function grow({ target }) {
  target.rows = Math.min(ROWS_MAX, target.value.split("\n").length);
}

if (form) {
  startSplit(document.querySelector("[data-split]"));
  form.elements.executor_param.addEventListener("input", grow);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run(form.querySelector("button"));
  });
}
