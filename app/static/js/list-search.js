/* Search field of a list: the fields behind Filter close like a menu. */
"use strict";

(function () {
  function closePicks(event) {
    const picks = document.querySelector(".picks[open]");
    /* what was clicked may be gone: a choice of a picker */
    const isLeft = event.type === "keydown" ? event.key === "Escape" : !event.composedPath().includes(picks);
    if (!picks || !isLeft) return;
    picks.open = false;
    if (event.type === "keydown") picks.firstElementChild.focus();
  }

  document.addEventListener("click", closePicks);
  document.addEventListener("keydown", closePicks);
})();
