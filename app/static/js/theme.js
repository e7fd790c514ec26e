/* Runs before the first paint: shows what needs scripts, follows the system's theme if none was chosen. */
"use strict";

(function () {
  const root = document.documentElement;
  root.dataset.js = "";
  if (root.dataset.bsTheme) return;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = function () {
    root.dataset.bsTheme = dark.matches ? "dark" : "light";
  };
  apply();
  dark.addEventListener("change", apply);
})();
