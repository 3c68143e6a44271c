/**
 * Static files, read at start and served under a path with their content hash, so that browsers can cache them for
 * ever.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress } from 'node:zlib'

const folder = fileURLToPath(new URL('./assets/', import.meta.url))
const stylesFolder = fileURLToPath(new URL('./styles/', import.meta.url))

/** The parts of `site.css`, which every page loads, in this order. */
const siteStyles = ['base.css', 'forms.css', 'components.css', 'layout.css']

/** The font of the site, from its package. Stylesheets refer to it as `url("geist.woff2")`. */
export const fontName = 'geist.woff2'
const fontFile = fileURLToPath(import.meta.resolve('@fontsource-variable/geist/files/geist-latin-wght-normal.woff2'))

/** Shared with the API, whose reference has it too. */
const iconFile = fileURLToPath(new URL('../platform/icon.svg', import.meta.url))

const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** Formats that are compressed already. */
const compressedFormats: ReadonlySet<string> = new Set(['.woff2', '.png'])

export interface Asset {
  readonly type: string
  readonly bytes: Buffer
  /** The same with Brotli; undefined for formats that are compressed already. */
  readonly compressed: Buffer | undefined
}

export interface Assets {
  /** The file at this path of the site, if there is one. */
  at(path: string): Asset | undefined
  /** The path of a file by its name: those of `web/assets`, and `icon.svg`. */
  pathOf(name: string): string
}

export async function readAssets(): Promise<Assets> {
  const assets = new Map<string, Asset>()
  const paths = new Map<string, string>()
  const add = async (name: string, bytes: Buffer) => {
    const [type, hash] = [contentTypes[extname(name)], createHash('sha256').update(bytes).digest('hex').slice(0, 12)]
    if (!type) throw new Error(`web/assets/${name}: no content type is defined for this extension`)
    const path = `/assets/${hash}/${name}`
    const compressed = compressedFormats.has(extname(name)) ? undefined : await promisify(brotliCompress)(bytes)
    assets.set(path, { type, bytes, compressed })
    paths.set(name, path)
  }
  await add(fontName, await readFile(fontFile))
  await add('icon.svg', await readFile(iconFile))
  const siteStyle = await Promise.all(siteStyles.map((name) => readFile(stylesFolder + name, 'utf8')))
  await add('site.css', Buffer.from(linkFont(siteStyle.join('\n'), paths.get(fontName) ?? '')))
  for (const name of await readdir(folder)) await add(name, await readFile(folder + name))
  return {
    at: (path) => assets.get(path),
    pathOf: (name) => {
      const path = paths.get(name)
      if (!path) throw new Error(`web/assets/${name} does not exist`)
      return path
    },
  }
}

const linkFont = (css: string, path: string): string => css.replaceAll(`url("${fontName}")`, `url("${path}")`)
