"""CSV for spreadsheets: lines as text whose cells are never read as formulas."""

import csv
import io
import re
from collections.abc import Iterable

#: marks the file as UTF-8 for spreadsheets
BYTE_ORDER_MARK = "\ufeff"
#: spreadsheets read a cell that starts with one of these, perhaps after blanks, as a formula; some accept the
#: full-width characters
FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", "\n")
#: where lists are separated by semicolons, or a text is pasted, a cell may begin inside one of ours
INNER_FORMULA = re.compile(rf"([;\t\r\n] *)(?=[{re.escape(''.join(FORMULA[:8]))}])")


def escape_formula(cell: str) -> str:
    """Return a cell that no spreadsheet reads as a formula."""
    inside = INNER_FORMULA.sub(r"\1'", cell)
    return f"'{inside}" if cell.lstrip(" ").startswith(FORMULA) else inside


def csv_lines(lines: Iterable[Iterable[str]]) -> str:
    """Return lines as CSV; a cell that a spreadsheet would read as a formula is escaped."""
    file = io.StringIO()
    csv.writer(file).writerows([escape_formula(cell) for cell in line] for line in lines)
    return file.getvalue()
