/* Log line as an element: number, time, colours. Content is always inserted as text. */
import { STAMP } from "./log-levels.js";

/* colours are ESC [ numbers m; other sequences (cursor, title) are dropped */
export const ESCAPES = /\u001b(?:\[([0-9;:?]*)([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\^_])/g;
const BASIC = 16;

function isColour(code) {
  return (code >= 30 && code <= 37) || (code >= 90 && code <= 97);
}

/* State after a sequence such as "1;31"; backgrounds and colours beyond the sixteen are ignored. */
function after(state, text) {
  const codes = text.split(/[;:]/).map(Number);
  let { colour, bold } = state;
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at];
    if (code === 0) [colour, bold] = [0, false];
    else if (code === 1) bold = true;
    else if (code === 22) bold = false;
    else if (code === 39) colour = 0;
    else if (isColour(code)) colour = code;
    else if (code === 38 || code === 48) {
      const number = codes[at + 1] === 5 ? codes[at + 2] : BASIC;
      if (code === 38) colour = number < 8 ? 30 + number : number < BASIC ? 82 + number : 0;
      at += codes[at + 1] === 5 ? 2 : 4;
    }
  }
  return { colour, bold };
}

function piece(text, { colour, bold }) {
  if (!colour && !bold) return document.createTextNode(text);
  const part = document.createElement("span");
  part.className = [colour ? `ansi-${colour}` : "", bold ? "ansi-bold" : ""].filter(Boolean).join(" ");
  part.textContent = text;
  return part;
}

function write(body, text) {
  let state = { colour: 0, bold: false };
  let from = 0;
  for (const match of text.matchAll(ESCAPES)) {
    if (match.index > from) body.append(piece(text.slice(from, match.index), state));
    if (match[2] === "m") state = after(state, match[1]);
    from = match.index + match[0].length;
  }
  if (from < text.length) body.append(piece(text.slice(from), state));
}

/* Row of a line; `page`: URL of the page whose line the number links to, empty for this page. */
export function makeLine(number, text, { level, word, page }) {
  const row = document.createElement("div");
  row.className = level ? `log-line level-${level}` : "log-line";
  if (!page) row.id = `L${number}`;
  const link = document.createElement("a");
  link.href = `${page}#L${number}`;
  link.textContent = String(number);
  link.setAttribute("aria-label", `${word} ${number}`);
  const body = document.createElement("span");
  const stamp = STAMP.exec(text);
  if (stamp) {
    const time = document.createElement("span");
    time.className = "stamp";
    time.textContent = stamp[0];
    body.append(time);
  }
  write(body, stamp ? text.slice(stamp[0].length) : text);
  row.append(link, body);
  return row;
}
