/* Languages for which the editor's own list loads far more than highlighting takes: HTML and CSS with PHP. */
const words = (text) => Object.fromEntries(text.split(" ").map((word) => [word, true]));

const PHP = {
  name: "php",
  keywords: words(
    "abstract and array as break callable case catch class clone const continue declare default do echo else elseif empty " +
      "enum eval exit extends final finally fn for foreach function global goto if implements include include_once instanceof " +
      "insteadof interface isset list match namespace new or print private protected public readonly require require_once " +
      "return self static parent switch throw trait try unset use var while xor yield",
  ),
  blockKeywords: words("catch do else elseif finally for foreach if switch try while"),
  defKeywords: words("class enum function interface namespace trait"),
  atoms: words("true false null TRUE FALSE NULL PHP_EOL __CLASS__ __DIR__ __FILE__ __FUNCTION__ __LINE__ __METHOD__ __NAMESPACE__"),
  multiLineStrings: true,
  hooks: {
    $: (stream) => {
      stream.eatWhile(/\w/);
      return "variableName.special";
    },
    "#": (stream) => {
      if (stream.peek() === "[") return "meta"; /* an attribute */
      stream.skipToEnd();
      return "comment";
    },
    "<": (stream) => (stream.match("?php") || stream.match("?=") ? "meta" : false),
    "?": (stream) => (stream.eat(">") ? "meta" : false),
  },
};

const loaders = {
  JavaScript: () => import("../vendor/codemirror/javascript-BVaBnk3P.js").then(({ javascript }) => javascript),
  PHP: () => import("../vendor/codemirror/clike-hUAFEsGo.js").then(({ clike }) => clike(PHP)),
};

/* The promise of a language's extension, or undefined for one that is not known. */
export function load(name, { LanguageDescription, StreamLanguage, languages }) {
  if (Object.hasOwn(loaders, name)) return loaders[name]().then((mode) => StreamLanguage.define(mode));
  const language = LanguageDescription.matchLanguageName(languages, name, true);
  return language ? language.load() : undefined;
}
