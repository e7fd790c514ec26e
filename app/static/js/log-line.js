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

/* [demo.py:12] or [orders#fails]-[45]-[job-5], behind the time */
const SOURCE = /^\[[^\]\s]{1,200}\](?:-\[[^\]]{1,100}\])*[ \t]+/;
/* lines of the client: --- job execute start --- */
const FRAMEWORK = /^(?:<br>)?-{5,} ?\S/;

/* Whether a line is of the client and not of the handler. */
export function isFramework(row) {
  return FRAMEWORK.test(row.logText.text);
}

function timeOf(stamp) {
  return /\d{2}:\d{2}:\d{2}/.exec(stamp)[0];
}

/* com.acme.Orders#close and 45 of [com.acme.Orders#close]-[45]-[job-5] as Orders:45 */
function placeOf(source) {
  const parts = Array.from(source.matchAll(/\[([^\]]*)\]/g), (match) => match[1]);
  const place = parts[0].replace(/^(?:[\w$]+\.)+(?=[A-Z])/, "");
  return parts.length > 1 && /^\d+$/.test(parts[1]) ? `${place.split("#")[0]}:${parts[1]}` : place;
}

function cell(name, text, title) {
  const part = document.createElement("span");
  part.className = name;
  part.textContent = text;
  part.title = title.trim();
  return part;
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
  body.className = "msg";
  const stamp = STAMP.exec(text);
  const rest = stamp ? text.slice(stamp[0].length) : text;
  const source = stamp ? SOURCE.exec(rest) : null;
  const cells = [];
  if (stamp) cells.push(cell("stamp", timeOf(stamp[0]), stamp[0]));
  if (source) cells.push(cell("src", placeOf(source[0]), source[0]));
  write(body, source ? rest.slice(source[0].length) : rest);
  row.append(link, ...cells, body);
  row.lineNumber = number;
  row.logText = { stamp: stamp ? stamp[0] : "", source: source ? source[0] : "", text: body.textContent };
  return row;
}
