/** Temporary folders. */
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** A folder without symbolic links in its path that the user of the embedded Postgres can access if the tests run as root. */
export async function makeFolder(name = ''): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), `relay-test-${name}`)))
  await chmod(folder, 0o755)
  return folder
}

export const removeFolder = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true, maxRetries: 5 })

/** Removed after the current test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await makeFolder()
  onTestFinished(() => removeFolder(folder))
  return folder
}
