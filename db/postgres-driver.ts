/**
 * postgres.js with four lines of its connection mended. As released (3.4.9), a connection that is lost at a bad moment ends
 * the whole process with an uncaught error, leaves a query unanswered for ever, or leaves a place in the pool that never
 * connects again (its issues 1066, 1154 and 1208). To be dropped once a release has the like.
 */
import { readFileSync } from 'node:fs'
import { createRequire, Module } from 'node:module'
import { dirname, join } from 'node:path'
import type postgres from 'postgres'

const mends = [
  {
    why: 'A transaction’s rollback on a connection that is gone is refused, instead of written to nowhere.',
    from: "return queryError(q, Errors.connection('CONNECTION_DESTROYED', options))\n",
    to: `return queryError(q, Errors.connection('CONNECTION_DESTROYED', options))

    if (socket === null)
      return queryError(q, Errors.connection('CONNECTION_CLOSED', options)), true
`,
  },
  {
    why: 'A write that was put off until the connection had gone is given up.',
    from: 'const x = socket.write(chunk, fn)\n',
    to: `if (socket === null)
      return chunk = nextWriteTimer = null, true

    const x = socket.write(chunk, fn)
`,
  },
  {
    why: 'The next connection begins with nothing put off, or it would never write its first byte, and with no old error.',
    from: `incomings = null
    clearImmediate(nextWriteTimer)
`,
    to: `incomings = null
    clearImmediate(nextWriteTimer)
    chunk = nextWriteTimer = errorResponse = null
`,
  },
  {
    why: 'Whatever still waits when the connection has gone is refused: also what came after its error, and what it was opened for.',
    from: `if (initial)
      return reconnect()

    !hadError && (query || sent.length) && error(Errors.connection('CONNECTION_CLOSED', options, socket))
`,
    to: `if (initial && options.host.length > 1)
      return reconnect()

    if (query || initial || sent.length)
      error(Errors.connection('CONNECTION_CLOSED', options, socket))
    query = null
`,
  },
  {
    why: 'A connection that is lost while it learns the types of arrays is one that is lost, and no error of its own.',
    from: 'return fetchArrayTypes()\n',
    to: 'return fetchArrayTypes().catch(() => {})\n',
  },
] as const

type Compiling = Module & { _compile(source: string, file: string): void }

/** The driver. Throws when it is not the one that the mends were made for, rather than run without them. */
export function loadPostgresDriver(): typeof postgres {
  const require = createRequire(import.meta.url)
  const entry = require.resolve('postgres')
  const file = join(dirname(entry), 'connection.js')
  let source = readFileSync(file, 'utf8')
  for (const { why, from, to } of mends) {
    if (source.split(from).length !== 2)
      throw new Error(`postgres.js has changed: look again whether it needs this. ${why}`)
    source = source.replace(from, () => to)
  }
  const connection = new Module(file) as Compiling
  connection.filename = file
  connection._compile(source, file)
  require.cache[file] = connection
  return require(entry) as typeof postgres
}
