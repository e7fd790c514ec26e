"""Jobs: list, form, detail, bulk changes, import and export, GLUE code."""

from app.console.jobs import (
    actions,
    bulk,
    favourites,
    glue,
    glue_versions,
    pages,
    run_once,
    transfer,
    versions,
)

MODULES = (
    pages,
    favourites,
    actions,
    run_once,
    bulk,
    transfer,
    glue,
    glue_versions,
    versions,
)
