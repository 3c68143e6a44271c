/** Finds a program that is installed on this machine. */
import { accessSync, constants } from 'node:fs'
import { isAbsolute, join } from 'node:path'

/**
 * @param folders those of `PATH`. A relative folder is ignored.
 * @returns the path of the program, or undefined when it is not installed.
 */
export function findProgram(name: string, folders: readonly string[]): string | undefined {
  for (const folder of folders.filter(isAbsolute)) {
    const path = join(folder, name)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // Not in this folder.
    }
  }
  return undefined
}
