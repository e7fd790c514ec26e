"""Table of a result as CSV, for spreadsheets."""

import csv
import io
from collections.abc import Sequence

from app.console.runs.export import BYTE_ORDER_MARK, escape_formula
from app.domain.text.texts import N_

NO_TABLE = N_("The result of this run is not a table.")


def csv_of(lines: Sequence[Sequence[str]]) -> str:
    """Return lines as CSV; a cell that a spreadsheet would read as a formula is escaped."""
    file = io.StringIO()
    csv.writer(file).writerows([escape_formula(cell) for cell in line] for line in lines)
    return BYTE_ORDER_MARK + file.getvalue()
