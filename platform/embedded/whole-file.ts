/** Files that are there whole or not at all, whatever happens in the midst of writing them. */
import { randomUUID } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'

/** Writes beside the file and moves it into its place, in place of one that is there. For the owner's eyes only. */
export async function writeWhole(file: string, text: string): Promise<void> {
  const draft = await writeDraft(file, text)
  try {
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

/** Writes a file of a random name beside the wanted one. A disk that is full leaves nothing behind. @returns its path. */
export async function writeDraft(file: string, text: string): Promise<string> {
  const draft = `${file}.${randomUUID()}`
  try {
    const handle = await open(draft, 'wx', 0o600)
    try {
      await handle.writeFile(text)
      // Moved before its content is on the disk, it could be empty after a power failure.
      await handle.sync()
    } finally {
      await handle.close()
    }
    return draft
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}
