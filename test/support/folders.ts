/** Folders that are gone when the test is, or whenever their maker removes them. */
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** With no link in its path, and open to the user as whom the embedded Postgres runs when the tests run as root. */
export async function makeFolder(name = ''): Promise<string> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), `relay-test-${name}`)))
  await chmod(folder, 0o755)
  return folder
}

export const removeFolder = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true, maxRetries: 5 })

/** Removed when the running test is over. */
export async function temporaryFolder(): Promise<string> {
  const folder = await makeFolder()
  onTestFinished(() => removeFolder(folder))
  return folder
}
