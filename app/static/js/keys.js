/* Shortcuts: / first filter, g and a letter page, n add, r refresh, e first error, [ and ] previous and next, ? list.
   Ignored in input fields. */
"use strict";

(function () {
  const WAIT_MS = 1200;
  const PAGES = { d: "dashboard", j: "jobs", l: "logs", e: "groups", u: "users", h: "help" };
  const palette = document.querySelector("[data-palette]");
  let armed = 0;

  /* Opened at once, so that no letter is lost; its script is loaded when it is first needed. */
  function openPalette() {
    if (palette.open) return;
    palette.querySelector("input").value = "";
    palette.showModal();
    import(palette.dataset.script).then(({ show }) => show()).catch(() => {});
  }

  function onPaletteKey(event) {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== "k") return;
    if (document.querySelector("dialog[open]") && !palette.open) return;
    event.preventDefault();
    if (palette.open) palette.close();
    else openPalette();
  }

  if (palette) {
    document.addEventListener("keydown", onPaletteKey);
    for (const button of document.querySelectorAll("[data-palette-open]")) {
      button.hidden = false;
      button.addEventListener("click", openPalette);
    }
  }

  function isTyping(target) {
    if (!(target instanceof Element) || target.closest("dialog:not([open])")) return false; /* closed, has the focus until the next frame */
    return target.closest("input, textarea, select, [contenteditable], .cm-editor, dialog") !== null;
  }

  function go(letter) {
    const link = document.querySelector(`[data-page="${PAGES[letter]}"]`);
    if (link) window.location.assign(link.href);
    return Boolean(link);
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
    const waiting = armed && Date.now() - armed < WAIT_MS;
    armed = 0;
    if (waiting && event.key in PAGES) {
      if (go(event.key)) event.preventDefault();
    } else if (event.key === "g") {
      armed = Date.now();
    } else if (event.key === "/") {
      const field = document.querySelector(".filters input:not([hidden], [type=hidden], [type=datetime-local]), [data-find]");
      if (!field) return;
      field.focus();
      event.preventDefault();
    } else if (event.key === "n") {
      const link = document.querySelector("[data-new]");
      if (!link) return;
      event.preventDefault();
      link.click();
    } else if (event.key === "[" || event.key === "]") {
      const link = document.querySelector(event.key === "[" ? 'a[rel="prev"]' : 'a[rel="next"]');
      if (link) window.location.assign(link.href);
    } else if (event.key === "e") {
      const jump = document.querySelector("[data-first-error]");
      if (jump && jump.checkVisibility()) jump.click();
    } else if (event.key === "r") {
      window.location.reload();
    } else if (event.key === "?") {
      const help = document.querySelector("[data-keys]");
      if (help) help.togglePopover();
    }
  }

  document.addEventListener("keydown", onKey);
})();
