/** Finds PgBouncer, without the test runner. */
import { readStackConfig } from '../../platform/config/stack.ts'
import { findProgram } from '../../platform/find-program.ts'

/** A shell of root has /usr/sbin in its path, that of others may not. */
export const findPgBouncer = (): string | undefined =>
  findProgram('pgbouncer', [...readStackConfig().searchPath, '/usr/sbin'])
