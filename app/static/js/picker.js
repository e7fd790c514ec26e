/* Pickers: a combobox in place of a long select or a field of ids. htmx searches as the user types; the field keeps the value. */
"use strict";

(function () {
  function start(picker) {
    const field = document.getElementById(picker.dataset.picker);
    const input = picker.querySelector("[role=combobox]");
    const list = picker.querySelector("[role=listbox]");
    const status = picker.querySelector("[data-status]");
    const picked = picker.querySelector("[data-picked]");
    const label = document.querySelector(`label[for="${field.id}"]`);
    const mode = picker.dataset.mode;
    const isMany = mode === "many" || mode === "names";
    const names = new Map();
    let active = -1;
    /* label of the current choice */
    let shown = input.value;

    const options = () => Array.from(list.querySelectorAll("[role=option]"));
    const isOpen = () => !list.hidden;

    function open() {
      if (isOpen()) return;
      list.hidden = false;
      input.setAttribute("aria-expanded", "true");
    }

    function close() {
      list.hidden = true;
      activate(-1);
      input.setAttribute("aria-expanded", "false");
      status.textContent = "";
    }

    function ask() {
      input.dispatchEvent(new CustomEvent("choices"));
    }

    function activate(at) {
      const all = options();
      active = all.length ? at : -1;
      all.forEach((option, number) => option.setAttribute("aria-selected", String(number === active)));
      if (active < 0) {
        input.removeAttribute("aria-activedescendant");
        return;
      }
      input.setAttribute("aria-activedescendant", all[active].id);
      all[active].scrollIntoView({ block: "nearest" });
    }

    function onAnswer() {
      options().forEach((option, number) => (option.id = `${list.id}-${number}`));
      if (document.activeElement !== input) return;
      open();
      activate(input.value && mode !== "free" ? 0 : -1);
      const note = list.querySelector("[data-note]");
      status.textContent = note ? note.textContent : "";
    }

    function store(value, text) {
      if (field instanceof HTMLSelectElement && !Array.from(field.options).some((option) => option.value === value)) {
        field.add(new Option(text, value));
      }
      const changes = field.value !== value;
      field.value = value;
      if (changes) field.dispatchEvent(new Event("change", { bubbles: true }));
    }

    function pick(option) {
      const { value, text } = option.dataset;
      names.set(value, text);
      if (isMany) {
        const ids = chosen();
        shown = input.value = "";
        choose(ids.includes(value) ? ids : [...ids, value]);
      } else {
        shown = input.value = text;
        store(value, text);
      }
      list.replaceChildren();
      close();
    }

    /* text that was not chosen is dropped; an emptied field clears the choice */
    function settle() {
      close();
      if (mode === "free") return;
      if (mode === "one" && input.value.trim() === "" && shown) {
        shown = "";
        store("", "");
      }
      if (input.value !== shown) list.replaceChildren();
      input.value = shown;
    }

    function chosen() {
      return field.value.split(",").map((text) => text.trim()).filter(Boolean);
    }

    function choose(ids) {
      field.value = ids.join(",");
      field.dispatchEvent(new Event("change", { bubbles: true }));
      showPicked();
    }

    function showPicked() {
      picked.replaceChildren(
        ...chosen().map((value) => {
          const item = document.createElement("li");
          const button = document.createElement("button");
          const text = names.get(value) || value;
          button.type = "button";
          button.className = "btn-close";
          button.setAttribute("aria-label", picked.dataset.remove.replace("#", text));
          button.addEventListener("click", () => {
            choose(chosen().filter((other) => other !== value));
            input.focus();
          });
          item.append(text, button);
          return item;
        }),
      );
    }

    function onKey(event) {
      const all = options();
      if (event.isComposing) return;
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        if (!isOpen()) {
          open();
          if (!all.length) return ask();
        }
        const step = event.key === "ArrowDown" ? 1 : -1;
        if (all.length) activate(active < 0 ? (step > 0 ? 0 : all.length - 1) : (active + step + all.length) % all.length);
      } else if (event.key === "Enter") {
        if (isOpen() && active >= 0) {
          event.preventDefault();
          pick(all[active]);
        } else if (mode !== "free" && input.value.trim() && input.value !== shown) {
          event.preventDefault();
          ask();
        } else if (isMany) {
          event.preventDefault();
        } else {
          event.preventDefault();
          settle();
          field.form.requestSubmit();
        }
      } else if (event.key === "Escape" && isOpen()) {
        event.preventDefault();
        event.stopPropagation();
        close();
      }
    }

    input.addEventListener("input", () => {
      if (mode === "free") field.value = input.value;
      activate(-1);
    });
    input.addEventListener("click", () => {
      if (options().length) open();
      else ask();
    });
    input.addEventListener("keydown", onKey);
    input.addEventListener("blur", settle);
    list.addEventListener("mousedown", (event) => event.preventDefault());
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) pick(option);
    });
    for (const name of ["htmx:afterSwap", "part-missing"]) list.addEventListener(name, onAnswer);
    if (isMany) {
      for (const item of picked.children) names.set(item.dataset.value, item.textContent);
      field.addEventListener("input", showPicked);
      showPicked();
    }
    if (mode !== "many") {
      if (document.activeElement === field) input.focus();
      field.hidden = true;
      if (label) label.htmlFor = input.id;
      for (const name of ["aria-describedby", "aria-invalid"]) {
        if (field.hasAttribute(name)) input.setAttribute(name, field.getAttribute(name));
      }
    }
    picker.hidden = false;
    const beside = input.hasAttribute("hx-include") ? document.querySelector(input.getAttribute("hx-include")) : null;
    if (beside) beside.addEventListener("change", () => list.replaceChildren());
  }

  document.querySelectorAll("[data-picker]").forEach(start);
})();
