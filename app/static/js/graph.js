/* A picture that is larger than its room opens at the job that it is about. */
"use strict";

(function () {
  const room = document.querySelector(".graph-room");
  const box = room && room.querySelector("[aria-current]");
  if (!box) return;
  const [at, of] = [box.getBoundingClientRect(), room.getBoundingClientRect()];
  room.scrollTo(at.x - of.x - (of.width - at.width) / 2, at.y - of.y - (of.height - at.height) / 2);
})();
