/** The programs of Postgres for backups, which the embedded server lacks. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { readStackConfig } from '../../platform/config/stack.ts'
import { findProgram } from '../../platform/find-program.ts'

/** The major version of the embedded server. An older pg_dump refuses it. */
const majorVersion = 18

/** The first folder of the PATH with psql, pg_dump and pg_restore of that version or newer; undefined without one. */
export const findPostgresPrograms = (): string | undefined =>
  readStackConfig().searchPath.find((folder) =>
    ['psql', 'pg_dump', 'pg_restore'].every(
      (name) => findProgram(name, [folder]) !== undefined && isRecent(folder, name),
    ),
  )

function isRecent(folder: string, name: string): boolean {
  const version = execFileSync(join(folder, name), ['--version'], { encoding: 'utf8' })
  return Number(/ (\d+)\./.exec(version)?.[1]) >= majorVersion
}
