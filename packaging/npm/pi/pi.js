#!/usr/bin/env node
require("@pinion-agent/cli/launch").launch("pi");
