/** The files of the API reference, under paths with their content hash, so that browsers can cache them for ever. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { brotliCompress, brotliDecompress } from 'node:zlib'

export interface PageFile {
  readonly type: string
  readonly brotli: Buffer
  /** The content for clients that do not accept Brotli, decompressed at its first use. */
  readonly content: () => Promise<Buffer>
}

export interface PageFiles {
  /** The file at this path, if there is one. */
  at(path: string): PageFile | undefined
  /** The path of a file by its name. */
  pathOf(name: string): string
}

const types = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8', svg: 'image/svg+xml' } as const
const sources = [
  { name: 'page.css', type: types.css, url: new URL('./assets/page.css', import.meta.url) },
  { name: 'start.js', type: types.js, url: new URL('./assets/start.js', import.meta.url) },
  { name: 'icon.svg', type: types.svg, url: new URL('../../platform/icon.svg', import.meta.url) },
  // Stored compressed: `npm run vendor`.
  {
    name: 'scalar-api-reference.js',
    type: types.js,
    url: new URL('../vendor/scalar-api-reference.js.br', import.meta.url),
  },
] as const

const compress = promisify(brotliCompress)
const decompress = promisify(brotliDecompress)

export async function readPageFiles(): Promise<PageFiles> {
  const paths = new Map<string, string>()
  const byPath = new Map<string, PageFile>()
  for (const { name, type, url } of sources) {
    const stored = await readFile(url)
    const hash = createHash('sha256').update(stored).digest('hex').slice(0, 12)
    const path = `/docs/${hash}/${name}`
    paths.set(name, path)
    byPath.set(path, url.pathname.endsWith('.br') ? compressedFile(type, stored) : await plainFile(type, stored))
  }
  return {
    at: (path) => byPath.get(path),
    pathOf: (name) => {
      const path = paths.get(name)
      if (!path) throw new Error(`the API reference has no file ${name}`)
      return path
    },
  }
}

export async function plainFile(type: string, bytes: Buffer): Promise<PageFile> {
  const brotli = await compress(bytes)
  return { type, brotli, content: async () => bytes }
}

const compressedFile = (type: string, brotli: Buffer): PageFile => ({
  type,
  brotli,
  content: memoize(() => decompress(brotli)),
})

/** Runs `load` at the first call. A failure is not kept. */
export function memoize<Value>(load: () => Promise<Value>): () => Promise<Value> {
  let value: Promise<Value> | undefined
  return () => {
    value ??= load().catch((error: unknown) => {
      value = undefined
      throw error
    })
    return value
  }
}
