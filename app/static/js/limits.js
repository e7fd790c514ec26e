/* Limits in the form of a job: rows of named limits, and the most common wish with one click. Without scripts there is
   an empty row, and the wish is a button that sends the form. */

const NEVER_TWICE = { max_running: "1", when_full: "wait" };

function change(input, value) {
  input.value = value;
  input.dispatchEvent(new Event("change", { bubbles: true }));
}

function renumber(row, number) {
  for (const part of row.querySelectorAll("[id], [for], [name]")) {
    for (const name of ["id", "for", "name"]) {
      const value = part.getAttribute(name);
      if (value) part.setAttribute(name, value.replace(/^limit\d+_/, `limit${number}_`));
    }
  }
  for (const label of row.querySelectorAll("label")) label.textContent = label.textContent.replace(/\d+/, number + 1);
  const remove = row.querySelector("[data-limit-remove]");
  remove.setAttribute("aria-label", remove.getAttribute("aria-label").replace(/\d+/, number + 1));
}

function empty(row) {
  for (const error of row.querySelectorAll(".invalid-feedback")) error.remove();
  for (const input of row.querySelectorAll(".is-invalid")) {
    input.classList.remove("is-invalid");
    for (const name of ["aria-invalid", "aria-describedby"]) input.removeAttribute(name);
  }
  row.querySelector("input").value = "1";
  row.querySelector("select").value = "";
}

function follow(place) {
  const add = place.querySelector("[data-limit-add]");
  const rows = () => [...place.querySelectorAll("[data-limit]")];
  const most = Number(place.dataset.limitsMax);

  function unused() {
    const used = rows().map((row) => row.querySelector("select").name);
    return [...Array(most).keys()].find((number) => !used.includes(`limit${number}_name`));
  }

  function renew() {
    add.hidden = rows().length >= most;
  }

  add.addEventListener("click", () => {
    const row = rows()[0].cloneNode(true);
    empty(row);
    renumber(row, unused());
    place.insertBefore(row, add);
    renew();
    row.querySelector("select").focus();
  });
  place.addEventListener("click", (event) => {
    const button = event.target.closest("[data-limit-remove]");
    if (!button) return;
    const row = button.closest("[data-limit]");
    empty(row);
    change(row.querySelector("select"), "");
    if (rows().length > 1) row.remove();
    renew();
    add.focus();
  });
  renew();
}

document.querySelectorAll("[data-limits]").forEach(follow);
for (const button of document.querySelectorAll("[data-never-twice]")) {
  button.addEventListener("click", () => {
    for (const [name, value] of Object.entries(NEVER_TWICE)) change(document.getElementById(name), value);
    document.getElementById("max_running").focus();
  });
}
