/** A Postgres with the certificate for `localhost`. */
import { chmod, chown, realpath, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connectPostgres } from '../../db/connection.ts'
import { startEmbeddedPostgres } from '../../platform/embedded/postgres.ts'
import { createLog } from '../../platform/log.ts'
import { atEnd } from './at-end.ts'
import { makeServerFolder, removeFolder } from './folders.ts'
import { localhostCertificate, localhostKey } from './localhost-certificate.ts'

/** Starts the server, and stops it after the tests of the file. */
export async function startTlsPostgres(): Promise<{ readonly url: string; readonly certificateFile: string }> {
  const dir = await makeServerFolder()
  const server = await startEmbeddedPostgres({ dir, log: createLog('postgres', 'silent'), settings: { fsync: 'off' } })
  atEnd(async () => {
    await server.stop()
    await removeFolder(dir)
  })
  const data = await realpath(join(dir, 'postgres', 'data')).catch(() => realpath(join(dir, 'data')))
  const { uid, gid } = await stat(data)
  for (const [name, text] of [
    ['server.crt', localhostCertificate],
    ['server.key', localhostKey],
  ] as const) {
    const path = join(data, name)
    await writeFile(path, text)
    await chmod(path, 0o600)
    await chown(path, uid, gid)
  }
  const certificateFile = join(dir, 'authority.pem')
  await writeFile(certificateFile, localhostCertificate)
  const sql = connectPostgres(server.url, 1)
  await sql`alter system set ssl = on`
  await sql`select pg_reload_conf()`
  await sql.end({ timeout: 5 })
  return { url: server.url, certificateFile }
}
