/* Command palette (Ctrl+K): pages, and the actions of this page, by name; jobs, runs, executors and users by a search. */
const ASK_AFTER_MS = 150;
const sheet = document.querySelector("[data-palette]");
const input = sheet.querySelector("[role=combobox]");
const list = sheet.querySelector("[role=listbox]");
const status = sheet.querySelector("[data-palette-status]");
let request = new AbortController();
let timer = 0;
let active = 0;

function options() {
  return Array.from(list.querySelectorAll("[role=option]"));
}

function activate(at) {
  const all = options();
  active = all.length ? (at + all.length) % all.length : -1;
  all.forEach((option, number) => {
    option.id = `palette-${number}`;
    option.setAttribute("aria-selected", String(number === active));
  });
  if (active < 0) {
    input.removeAttribute("aria-activedescendant");
    return;
  }
  input.setAttribute("aria-activedescendant", all[active].id);
  all[active].scrollIntoView({ block: "nearest" });
}

function group(label, items) {
  if (!items.length) return [];
  const part = document.createElement("div");
  part.setAttribute("role", "group");
  part.setAttribute("aria-label", label);
  const caption = document.createElement("span");
  caption.className = "caption";
  caption.setAttribute("aria-hidden", "true");
  caption.textContent = label;
  part.append(caption, ...items);
  return [part];
}

function makeOption(text) {
  const option = document.createElement("div");
  option.setAttribute("role", "option");
  option.textContent = text;
  return option;
}

/* Buttons and links of the head of the page, its menu, and the theme: an option presses the same control. */
function actions(text) {
  const head = document.querySelector(".page-head");
  const controls = head ? Array.from(head.querySelectorAll(".actions a[href], [data-switch], .actions .menu button")) : [];
  controls.push(...document.querySelectorAll("[data-theme-toggle]"));
  const names = new Set();
  return controls.flatMap((control) => {
    const label = (control.ariaLabel || control.title || control.textContent).replace(/\s+/g, " ").trim();
    const name = control.matches(".switch") ? control.title || label : label;
    if (!name || control.disabled || names.has(name) || !name.toLowerCase().includes(text)) return [];
    names.add(name);
    const option = makeOption(name);
    option.control = control;
    return [option];
  });
}

function copyLink(text) {
  const option = makeOption(sheet.dataset.copyLink);
  option.copies = true;
  return option.textContent.toLowerCase().includes(text) ? [option] : [];
}

function own(text) {
  const { textPages, textActions } = sheet.dataset;
  return [...group(textActions, [...actions(text), ...copyLink(text)]), ...group(textPages, pages(text))];
}

/* The words of a link of the menu, without its number. */
const titleOf = (link) => (link.querySelector(".label") || link).textContent.trim();

function pages(text) {
  const links = [".sidebar", ".menu"].flatMap((part) => [...document.querySelectorAll(`${part} [data-page]`)]);
  return links
    .filter((link) => titleOf(link).toLowerCase().includes(text))
    .map((link) => {
      const option = makeOption(titleOf(link));
      option.dataset.href = link.href;
      return option;
    });
}

/* Says why nothing is found. */
function say(text) {
  const note = document.createElement("div");
  note.className = "note";
  note.setAttribute("role", "presentation");
  note.textContent = text;
  list.append(note);
  status.textContent = text;
}

async function ask() {
  request.abort();
  request = new AbortController();
  const { signal } = request;
  const text = input.value.trim();
  list.replaceChildren(...own(text.toLowerCase()));
  activate(0);
  status.textContent = "";
  if (!text) return;
  const answer = await fetch(`${sheet.dataset.jobs}?${new URLSearchParams({ q: text })}`, { signal }).catch(() => null);
  if (signal.aborted) return;
  if (!answer || !answer.ok || answer.redirected) {
    const { noAnswer, loginEnded } = document.body.dataset;
    const hasEnded = answer !== null && answer.redirected;
    if (hasEnded) document.dispatchEvent(new CustomEvent("login-ended")); /* js/parts.js */
    say(hasEnded ? loginEnded : noAnswer);
    return;
  }
  const part = new DOMParser().parseFromString(await answer.text(), "text/html");
  const items = [...part.body.children].map((item) => document.adoptNode(item));
  const note = items.find((item) => "note" in item.dataset);
  status.textContent = note ? note.textContent : "";
  list.replaceChildren(...items.filter((item) => item !== note), ...own(text.toLowerCase()), note || "");
  activate(Math.max(0, active));
}

function go(option) {
  if (!option) return;
  if (option.dataset.href) {
    window.location.assign(option.dataset.href);
    return;
  }
  sheet.close();
  if (option.copies) import("./copy.js").then(({ copyText }) => copyText(window.location.href)).catch(() => {});
  else if (option.control) option.control.click();
}

/* Shows the actions and pages, and what a text already typed finds; js/keys.js has opened the dialog. */
export function show() {
  ask().catch(() => {});
}

input.addEventListener("input", () => {
  window.clearTimeout(timer);
  timer = window.setTimeout(() => ask().catch(() => {}), ASK_AFTER_MS);
});
input.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    activate(active + (event.key === "ArrowDown" ? 1 : -1));
  } else if (event.key === "Enter") {
    event.preventDefault();
    go(options()[active]);
  }
});
list.addEventListener("click", (event) => go(event.target.closest("[role=option]")));
sheet.addEventListener("click", (event) => {
  if (event.target === sheet || event.target.closest("[data-palette-close]")) sheet.close();
});
