/* Runs the saved code and shows that run beside it. */
import { explain, fill, runOnce } from "./run-sheet.js";

const form = document.querySelector("[data-try]");
const note = document.querySelector("[data-try-note]");
const place = document.querySelector("[data-try-run]");
const link = document.querySelector("[data-run-page-link]");

async function run() {
  const isChanged = document.querySelector("[data-glue]").hasAttribute("data-is-changed");
  note.textContent = isChanged ? form.dataset.textUnsaved : "";
  await runOnce(form, (found) => {
    link.href = fill(place, found);
    link.textContent = form.dataset.textOpen;
  });
}

if (form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run().catch((error) => explain(note, error, form.dataset.textFailed));
  });
}
