/** The browser that the system tests drive. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

const names = ['chromium', 'chromium-browser', 'google-chrome']

/** The path in SVC_TEST_CHROMIUM, or of the first Chromium on PATH; undefined when there is none. */
export function findChromium(environment: NodeJS.ProcessEnv = process.env): string | undefined {
  const folders = [...(environment.PATH ?? '').split(delimiter), '/usr/bin']
  const found = folders.flatMap((folder) => names.map((name) => join(folder, name)))
  return [environment.SVC_TEST_CHROMIUM ?? '', ...found].find(isProgram)
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return path !== ''
  } catch {
    return false
  }
}
