/** Temporary folders. */
import { chmod, mkdtemp, readdir, realpath, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/**
 * A folder without symbolic links in its path that the user of the embedded Postgres can access if the tests run as
 * root.
 */
export async function makeFolder(name = '', parent = tmpdir()): Promise<string> {
  const folder = await realpath(await mkdtemp(join(parent, `relay-test-${name}`)))
  await chmod(folder, 0o755)
  return folder
}

const memory = '/dev/shm'
/** Many times what the servers of a test run store at a time. */
const freeBytesMin = 4 * 2 ** 30

/**
 * A folder for the data of a server: in memory if there is plenty of it, where Postgres copies a database with a
 * fraction of the CPU time.
 */
export async function makeServerFolder(name = ''): Promise<string> {
  const free = await statfs(memory).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  )
  return makeFolder(name, free < freeBytesMin ? tmpdir() : memory)
}

/** The folders of servers in memory, of this run and of others. */
export async function listServerFolders(): Promise<string[]> {
  const names = await readdir(memory).catch(() => [])
  return names.filter((name) => name.startsWith('relay-test-')).map((name) => join(memory, name))
}

export const removeFolder = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true, maxRetries: 5 })

/** Removed after the current test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await makeFolder()
  onTestFinished(() => removeFolder(folder))
  return folder
}
