"""GLUE languages: the one table of their titles, editor modes and templates.

A new language is a member of ``GlueType`` and a row here. How an executor runs it
is in ``executor_client/execution/glue.py``, which imports nothing from this package.

A template prints the path of the script, its parameter and its shard, and ends with success.
"""

from dataclasses import dataclass

from app.domain.enums import GlueType

_SHELL = """#!/bin/bash
echo "script: $0"
echo "parameter: $1"
echo "shard $2 of $3"
exit 0
"""
_PYTHON = """#!/usr/bin/env python3
import sys

script, parameter, shard_index, shard_total = (sys.argv + [""] * 4)[:4]
print("script:", script)
print("parameter:", parameter)
print("shard", shard_index, "of", shard_total)
sys.exit(0)
"""
_PHP = """<?php
echo "script: " . $argv[0] . PHP_EOL;
echo "parameter: " . ($argv[1] ?? "") . PHP_EOL;
echo "shard " . ($argv[2] ?? 0) . " of " . ($argv[3] ?? 1) . PHP_EOL;
exit(0);
"""
_NODEJS = """#!/usr/bin/env node
const [, script, parameter, shardIndex, shardTotal] = process.argv;
console.log("script:", script);
console.log("parameter:", parameter);
console.log("shard", shardIndex, "of", shardTotal);
process.exit(0);
"""
_POWERSHELL = """Write-Host "script: $PSCommandPath"
Write-Host "parameter: $($args[0])"
Write-Host "shard $($args[1]) of $($args[2])"
exit 0
"""
_GROOVY = """package com.xxl.job.service.handler;

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


@dataclass(frozen=True, slots=True)
class GlueLanguage:
    """GLUE language: title, editor mode and template."""

    title: str
    #: the mode of the code editor
    editor_mode: str
    #: first source of a new job
    template: str


#: by run mode, in the order of the select boxes; BEAN has no code
GLUE_LANGUAGES: dict[str, GlueLanguage] = {
    GlueType.GLUE_GROOVY: GlueLanguage("GLUE(Java)", "Java", _GROOVY),
    GlueType.GLUE_SHELL: GlueLanguage("GLUE(Shell)", "Shell", _SHELL),
    GlueType.GLUE_PYTHON: GlueLanguage("GLUE(Python)", "Python", _PYTHON),
    GlueType.GLUE_PHP: GlueLanguage("GLUE(PHP)", "PHP", _PHP),
    GlueType.GLUE_NODEJS: GlueLanguage("GLUE(Nodejs)", "JavaScript", _NODEJS),
    GlueType.GLUE_POWERSHELL: GlueLanguage("GLUE(PowerShell)", "PowerShell", _POWERSHELL),
}
