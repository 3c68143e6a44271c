/** Files that a crash leaves complete: with their old content or with the new one. */
import { randomUUID } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'

/** Writes or replaces a file that only its owner can read (0600). */
export async function writeFileAtomically(file: string, text: string): Promise<void> {
  const draft = `${file}.${process.pid}.${randomUUID()}.draft`
  try {
    const handle = await open(draft, 'wx', 0o600)
    try {
      await handle.writeFile(text)
      // Renamed before its content is on the disk, the file could be empty after a power failure.
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}
