/** Part of `npm run generate`: applies all migrations to an empty database and writes its schema to `db/schema.sql`. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '../platform/embedded/postgres.ts'
import { Lifecycle } from '../platform/lifecycle.ts'
import { createLog } from '../platform/log.ts'
import { connectPostgres } from './connection.ts'
import { migrate } from './migrations.ts'
import { schemaText } from './schema.ts'

const log = createLog('generate', 'warn')
const life = new Lifecycle(log)
try {
  const dir = life.hold('folder', await mkdtemp(join(tmpdir(), 'relay-schema-')), (path) =>
    rm(path, { recursive: true, force: true }),
  )
  const server = life.hold('postgres', await startEmbeddedPostgres({ dir, log }), (it) => it.stop())
  const sql = life.hold('connection', connectPostgres(server.url, 1), (it) => it.end({ timeout: 5 }))
  await migrate(sql)
  await writeFile(new URL('schema.sql', import.meta.url), await schemaText(sql))
} finally {
  await life.stop()
}
