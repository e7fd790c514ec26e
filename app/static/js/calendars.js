/* Year view of a calendar: a click on a day makes it a holiday, a workday, or what its weekday says. What is sent is the
   text below the months, which follows the clicks; without scripts it is what a user edits. */

const NEXT = { "": "holiday", holiday: "workday", workday: "" };
const STEPS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7 };
const LINE = /^\s*(\d{4})[-/]?(\d{1,2})[-/]?(\d{1,2})\s*[,;\t]\s*(\w+)\s*(?:[,;\t]\s*(.*?)\s*)?$/;

function quoted(name) {
  return /[",;\t]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
}

function unquoted(name) {
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name;
}

function follow(form) {
  const text = form.querySelector("#days");
  const naming = form.querySelector("[data-day-name]");
  if (!text) return;
  const days = [...form.querySelectorAll("[data-months] [data-day]")].map(asButton);
  const places = new Map(days.map((day, index) => [day.dataset.day, index]));
  const signs = { holiday: form.dataset.off, workday: form.dataset.work };

  function asButton(box) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = box.className;
    Object.assign(button.dataset, box.dataset);
    button.title = box.title;
    button.tabIndex = -1;
    button.append(...box.childNodes);
    button.setAttribute("aria-label", box.title);
    box.replaceWith(button);
    return button;
  }

  function show(day, kind, name) {
    day.dataset.kind = kind;
    day.dataset.name = name;
    day.querySelector(".sign").textContent = signs[kind] || "";
    const words = [day.dataset.title, form.dataset[kind || "pattern"], name];
    day.title = words.filter(Boolean).join(" · ");
    day.setAttribute("aria-label", day.title);
  }

  function write() {
    const own = days.filter((day) => day.dataset.kind);
    const lines = own.map(({ dataset: { day, kind, name } }) => [day, kind, ...(name ? [quoted(name)] : [])].join(","));
    text.value = lines.length ? `${lines.join("\n")}\n` : "";
    text.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function read() {
    const own = new Map();
    for (const line of text.value.split("\n")) {
      const [, year, month, date, kind, name] = LINE.exec(line) || [];
      if (kind in signs) own.set(`${year}-${month.padStart(2, "0")}-${date.padStart(2, "0")}`, [kind, unquoted(name || "")]);
    }
    for (const day of days) {
      const [kind, name] = own.get(day.dataset.day) || ["", ""];
      if (day.dataset.kind !== kind || day.dataset.name !== name) show(day, kind, name);
    }
  }

  function go(to) {
    const day = days[Math.min(Math.max(to, 0), days.length - 1)];
    for (const each of days) each.tabIndex = each === day ? 0 : -1;
    return day;
  }

  go(Math.max(0, days.findIndex((day) => day.classList.contains("today"))));
  form.addEventListener("click", (event) => {
    const day = event.target.closest("button[data-day]");
    if (!day) return;
    const kind = NEXT[day.dataset.kind] ?? "";
    show(day, kind, kind ? naming.value.trim() || day.dataset.name : "");
    go(places.get(day.dataset.day));
    write();
  });
  form.addEventListener("keydown", (event) => {
    const day = event.target.closest("button[data-day]");
    if (!day || !(event.key in STEPS)) return;
    event.preventDefault();
    go(places.get(day.dataset.day) + STEPS[event.key]).focus();
  });
  text.addEventListener("change", read);
  read();
}

document.querySelectorAll("form[data-calendar]").forEach(follow);
