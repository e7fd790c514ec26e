# Thin names for `python3 manage.py <word>`; what each does stands there. Arguments: make test ARGS="-k cron"
PYTHON ?= python3
ARGS ?=

.PHONY: help setup run test check bench faults
help:
	@$(PYTHON) manage.py
setup run test check bench faults:
	@$(PYTHON) manage.py $@ $(ARGS)
