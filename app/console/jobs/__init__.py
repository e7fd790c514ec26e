"""Jobs: list, form, detail, bulk changes, import and export, GLUE code."""

from app.console.jobs import actions, bulk, favourites, glue, glue_versions, pages, transfer

MODULES = (
    pages,
    favourites,
    actions,
    bulk,
    transfer,
    glue,
    glue_versions,
)
