/* Runs before the first paint: where no theme was chosen, follow the system's. */
"use strict";

(function () {
  const root = document.documentElement;
  if (root.dataset.bsTheme) return;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = function () {
    root.dataset.bsTheme = dark.matches ? "dark" : "light";
  };
  apply();
  dark.addEventListener("change", apply);
})();
