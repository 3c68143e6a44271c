/** The few files that pages refer to, read once and named by what they hold, so that browsers may keep them for ever. */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('./assets/', import.meta.url))

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

export interface Asset {
  readonly type: string
  readonly bytes: Buffer
}

export interface Assets {
  /** The file at this path of the site, if it is one. */
  at(path: string): Asset | undefined
  /** The path for a file by its name in `web/assets`. */
  pathOf(name: string): string
}

export async function readAssets(): Promise<Assets> {
  const assets = new Map<string, Asset>()
  const paths = new Map<string, string>()
  for (const name of await readdir(folder)) {
    const bytes = await readFile(folder + name)
    const [type, hash] = [types[extname(name)], createHash('sha256').update(bytes).digest('hex').slice(0, 12)]
    if (!type) throw new Error(`web/assets/${name} is of a kind that the site does not serve`)
    const path = `/assets/${hash}/${name}`
    assets.set(path, { type, bytes })
    paths.set(name, path)
  }
  return {
    at: (path) => assets.get(path),
    pathOf: (name) => {
      const path = paths.get(name)
      if (!path) throw new Error(`there is no web/assets/${name}`)
      return path
    },
  }
}
