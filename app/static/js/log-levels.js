/* Level of a log line: error, stack frame, warning or none. Covers the languages of GLUE and their runtimes. */

/* 2026-11-20 08:00:00,123 or [2026-11-20T08:00:00.123+08:00], and one blank: others indent what follows */
export const STAMP = /^\[?\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?\]?(?:[ \t]|$)/;

/* a line of a lower level may mention an exception without being an error */
const CALM = /^\s*(?:\S+\s+){0,3}?[[(]?(?:INFO|DEBUG|TRACE|NOTICE|WARN(?:ING)?)\b/;
const NAMED = /\b\w+(?:Error|Exception)\b(?!\.\w)|\b(?:Error|Exception)(?=:|$)|^Exception\b/;
/* characters of a line that decide */
const READ = 2000;
const ERRORS = [
  /\b(?:ERROR|FATAL|CRITICAL|SEVERE)\b/,
  /^\S*(?:Error|Exception):/,
  /^Traceback \(most recent call last\)|^During handling of the above exception/,
  /^\s*Caused by: /,
  /\b(?:Fatal|Parse) error: |^Uncaught |^fatal: |^panic: |\bERR!/,
  /: (?:command )?not found$|: No such file or directory$|: Permission denied$|: syntax error\b|\bSegmentation fault\b/,
  /\bis not recognized as (?:the name of|an internal)\b/,
  /^\s*\+ (?:CategoryInfo|FullyQualifiedErrorId)\s*:/,
  /^\S+\.groovy: \d+: /,
];
const FRAMES = [
  /^\s+at\s+\S/,
  /^\s*File "[^"]*", line \d+/,
  /^\s*#\d+ (?:\{main\}|\[internal function\]|\S+\(\d+\): )/,
  /^\s*\.\.\. \d+ (?:more|common frames omitted)/,
  /^At (?:line|\S.*):\d+ char:\d+/,
  /^\s+thrown in .* on line \d+/,
];
const WARNS = [/\bWARN(?:ING)?\b/, /\b(?:\w*Warning|Deprecated): /];

function matches(patterns, text) {
  return patterns.some((pattern) => pattern.test(text));
}

/* Return "error", "frame", "warn" or ""; `before`: the level of the line above, as indented lines belong to a frame. */
export function levelOf(line, before = "") {
  const text = line.slice(0, READ).replace(STAMP, "");
  if (matches(FRAMES, text)) return "frame";
  const isIndented = /^\s+\S/.test(text);
  if (isIndented && before === "frame") return "frame";
  if (matches(ERRORS, text)) return "error";
  if (!CALM.test(text) && NAMED.test(text)) return "error";
  return matches(WARNS, text) ? "warn" : "";
}
