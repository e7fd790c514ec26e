"""Folding of case for searches: each character becomes one character, so that positions stay."""

#: lower case of these is two characters, or depends on what surrounds them, or they equal a letter of ASCII
_SINGLE = (("İ", "i"), ("ς", "σ"), ("ı", "i"), ("ſ", "s"))

#: letters whose lower case has another length
_FOLDED = {ord("İ"): "i"}


def fold(text: str) -> str:
    """Return a text in lower case, of the same length."""
    if text.isascii():
        return text.lower()
    text = text.translate(_FOLDED).lower()
    for letter, replacement in _SINGLE:
        text = text.replace(letter, replacement)
    return text
