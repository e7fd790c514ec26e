"""Rounds of jobs that run after others: the list, the page of one, and running what is missing."""

from app.console.rounds import actions, pages

MODULES = (actions, pages)
