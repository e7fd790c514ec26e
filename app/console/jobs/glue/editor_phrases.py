"""Editor phrases: the code editor's own texts, translated."""

from app.console.web.language import lazy_gettext as _l

#: the editor's text -> the text shown
PHRASES = {
    "Find": _l("Find"),
    "Replace": _l("Replace with"),
    "next": _l("Next match"),
    "previous": _l("Previous match"),
    "all": _l("All matches"),
    "match case": _l("Match case"),
    "regexp": _l("Regular expression"),
    "by word": _l("Whole words"),
    "replace": _l("Replace"),
    "replace all": _l("Replace all"),
    "close": _l("Close"),
    "current match": _l("current match"),
    "replaced $ matches": _l("$ matches replaced"),
    "replaced match on line $": _l("match on line $ replaced"),
    "on line": _l("on line"),
    "Go to line": _l("Go to line"),
    "go": _l("Go"),
    "Fold line": _l("Fold the block"),
    "Unfold line": _l("Unfold the block"),
    "folded code": _l("folded code"),
    "unfold": _l("Unfold"),
    "Folded lines": _l("Folded lines"),
    "Unfolded lines": _l("Unfolded lines"),
    "to": _l("to line"),
    "Completions": _l("Completions"),
    "Control character": _l("Control character"),
}


def phrases() -> dict[str, str]:
    """Return the texts of the editor in the reader's language."""
    return {phrase: str(text) for phrase, text in PHRASES.items()}
