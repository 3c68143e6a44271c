/**
 * `npm run build:programs`: builds the bundles of the programs ahead of time, for a container image and before the
 * tests.
 */
import { fileURLToPath } from 'node:url'
import { findProgramBundle } from './program-bundle.mjs'

const programs = [
  'api/server.ts',
  'web/server.ts',
  'activities/worker/worker.ts',
  'db/migrate.ts',
  'relay-node/main.ts',
  'cli/start.ts',
  'cli/demo.ts',
  'cli/svc/main.ts',
]

for (const program of programs) await findProgramBundle(fileURLToPath(new URL(`../${program}`, import.meta.url)))
