"""Promises of jobs, and the incidents of broken ones."""

from app.console.promises import incidents, promise_list

MODULES = (incidents, promise_list)
