/* Runs the saved code and shows the log of that run beside it. */

const POLL_MS = 700;
const form = document.querySelector("[data-try]");
const note = document.querySelector("[data-try-note]");
let turn = 0;

async function newest(after) {
  const address = form.dataset.newest + (after === null ? "" : `&after=${after}`);
  const answer = await fetch(address, { headers: { Accept: "application/json", "X-Refresh": "auto" } });
  if (!answer.ok || answer.redirected) throw new Error(String(answer.status));
  return answer.json();
}

function show({ lines, page }) {
  note.textContent = "";
  document.querySelector("[data-try-log]").hidden = false;
  const link = document.querySelector("[data-run-page]");
  link.href = page;
  link.textContent = form.dataset.textOpen;
  document.dispatchEvent(new CustomEvent("log-open", { detail: lines }));
}

async function waitFor(after, own) {
  if (own !== turn) return;
  const found = await newest(after);
  if (found.run) show(found);
  else window.setTimeout(() => waitFor(after, own).catch(fail), POLL_MS);
}

function fail() {
  note.textContent = form.dataset.textFailed;
}

async function run(event) {
  event.preventDefault();
  turn += 1;
  const own = turn;
  const isChanged = document.querySelector("[data-glue]").hasAttribute("data-is-changed");
  note.textContent = [isChanged ? form.dataset.textUnsaved : "", form.dataset.textSending].join(" ").trim();
  const before = (await newest(null)).newest;
  const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
  if (!answer.ok) throw new Error(String(answer.status));
  await waitFor(before, own);
}

if (form) form.addEventListener("submit", (event) => run(event).catch(fail));
