"""First versions of GLUE sources: each prints where it lies, its parameter and its shard, and ends well."""

from dataclasses import replace

from app.console.web.language import _
from app.domain.enums import GlueType
from app.domain.permissions import Actor, Right
from app.services.jobs.jobs import JobDraft

SHELL = """#!/bin/bash
echo "script: $0"
echo "parameter: $1"
echo "shard $2 of $3"
exit 0
"""
PYTHON = """#!/usr/bin/env python3
import sys

script, parameter, shard_index, shard_total = (sys.argv + [""] * 4)[:4]
print("script:", script)
print("parameter:", parameter)
print("shard", shard_index, "of", shard_total)
sys.exit(0)
"""
PHP = """<?php
echo "script: " . $argv[0] . PHP_EOL;
echo "parameter: " . ($argv[1] ?? "") . PHP_EOL;
echo "shard " . ($argv[2] ?? 0) . " of " . ($argv[3] ?? 1) . PHP_EOL;
exit(0);
"""
NODEJS = """#!/usr/bin/env node
const [, script, parameter, shardIndex, shardTotal] = process.argv;
console.log("script:", script);
console.log("parameter:", parameter);
console.log("shard", shardIndex, "of", shardTotal);
process.exit(0);
"""
POWERSHELL = """Write-Host "script: $PSCommandPath"
Write-Host "parameter: $($args[0])"
Write-Host "shard $($args[1]) of $($args[2])"
exit 0
"""
GROOVY = """package com.xxl.job.service.handler;

import com.xxl.job.core.context.XxlJobHelper;
import com.xxl.job.core.handler.IJobHandler;

public class FirstGlueHandler extends IJobHandler {

    @Override
    public void execute() throws Exception {
        XxlJobHelper.log("parameter: {}", XxlJobHelper.getJobParam());
        XxlJobHelper.log("shard {} of {}", XxlJobHelper.getShardIndex(), XxlJobHelper.getShardTotal());
    }
}
"""
SOURCES: dict[str, str] = {
    GlueType.GLUE_SHELL: SHELL,
    GlueType.GLUE_PYTHON: PYTHON,
    GlueType.GLUE_PHP: PHP,
    GlueType.GLUE_NODEJS: NODEJS,
    GlueType.GLUE_POWERSHELL: POWERSHELL,
    GlueType.GLUE_GROOVY: GROOVY,
}


def with_starter(draft: JobDraft, actor: Actor) -> JobDraft:
    """Return a new job with the first version of its source, where it has one and its author may write sources."""
    source = SOURCES.get(draft.glue_type, "")
    if not source or not actor.may(draft.job_group, Right.GLUE):
        return draft
    return replace(draft, glue_source=source, glue_remark=_("Initial code"))
