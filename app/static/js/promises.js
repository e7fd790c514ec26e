/* Rows of promises in a form: added, emptied, and filled from a suggestion. Without scripts some empty rows are there. */

const kindOf = (row) => row.querySelector(".of-kind select");

function empty(row) {
  kindOf(row).value = "";
  row.querySelector(".of-value input").value = "";
  for (const part of ["unit", "then"]) row.querySelector(`.of-${part} select`).selectedIndex = 0;
}

function follow(place) {
  const rows = [...place.querySelectorAll("[data-promise]")];
  const add = place.querySelector("[data-promise-add]");

  function renew() {
    add.hidden = rows.every((row) => !row.hidden);
  }

  function changed(row) {
    kindOf(row).dispatchEvent(new Event("change", { bubbles: true }));
    renew();
  }

  function remove(row) {
    empty(row);
    row.hidden = true;
    changed(row);
    add.focus();
  }

  function use({ kind, value, unit }) {
    const row = rows.find((each) => kindOf(each).value === kind) || rows.find((each) => kindOf(each).value === "");
    if (!row) return;
    kindOf(row).value = kind;
    row.querySelector(".of-value input").value = value;
    row.querySelector(".of-unit select").value = unit;
    row.hidden = false;
    changed(row);
  }

  for (const row of rows) row.hidden = kindOf(row).value === "" && !row.querySelector(".is-invalid");
  renew();
  add.addEventListener("click", () => {
    const row = rows.find((each) => each.hidden);
    place.insertBefore(row, add);
    row.hidden = false;
    renew();
    kindOf(row).focus();
  });
  place.closest("form").addEventListener("click", (event) => {
    const removing = event.target.closest("[data-promise-remove]");
    if (removing) remove(removing.closest("[data-promise]"));
    const using = event.target.closest("[data-promise-use]");
    if (using) use(using.dataset);
  });
}

export function start(root) {
  for (const place of root.querySelectorAll("[data-promises]")) {
    if ("started" in place.dataset) continue;
    place.dataset.started = "";
    follow(place);
  }
}

start(document);
