#!/usr/bin/env node
// The launcher of `svc` for any folder: plain JavaScript, since only tsx can run the program itself.
import { fileURLToPath } from 'node:url'
import { register } from 'tsx/esm/api'

register({ tsconfig: fileURLToPath(new URL('../../tsconfig.json', import.meta.url)) })
await import('./main.ts')
