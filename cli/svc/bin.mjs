#!/usr/bin/env node
// The launcher of `svc` for any folder.
import { fileURLToPath } from 'node:url'
import { importProgram } from '../../platform/program-bundle.mjs'

await importProgram(fileURLToPath(new URL('main.ts', import.meta.url)))
