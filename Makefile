# A target for each command of `python3 manage.py`, which lists them. Arguments: make test ARGS="-k cron"
PYTHON ?= python3
ARGS ?=

.PHONY: help setup run test test-all check bench faults lock translations reference pictures dist
help:
	@$(PYTHON) manage.py
setup run test test-all check bench faults lock translations reference pictures dist:
	@$(PYTHON) manage.py $@ $(ARGS)
