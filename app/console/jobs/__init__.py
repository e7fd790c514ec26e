"""Jobs: list, form, detail, bulk changes, import and export, GLUE code."""

from app.console.jobs import actions, graph, pages, run_once, transfer
from app.console.jobs.form import parameter_preview, promise_parts, rounds_preview
from app.console.jobs.glue import editor
from app.console.jobs.glue import versions as glue_versions
from app.console.jobs.history import versions
from app.console.jobs.lists import bulk, favourites

MODULES = (
    pages,
    favourites,
    actions,
    run_once,
    parameter_preview,
    promise_parts,
    rounds_preview,
    bulk,
    transfer,
    editor,
    glue_versions,
    versions,
    graph,
)
