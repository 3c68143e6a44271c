/**
 * `npm run proof`: writes the tables of docs/proof.md and docs/performance.md from docs/proof/*.json, and draws
 * docs/images/growth-*.svg.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { renderCapacity } from './capacity.ts'
import { drawGrowth } from './growth-plots.ts'
import { type PictureProof, renderPicture } from './picture-proof.ts'
import { type Result, renderPage, resultNames } from './proof-page.ts'
import type { Row } from './rows.ts'

const docs = fileURLToPath(new URL('../docs/', import.meta.url))

/** The pages that show results. */
export const pages = ['proof.md', 'performance.md'].map((name) => `${docs}${name}`)

/** Undefined when the file does not exist. */
async function readJson<Content = Result>(name: string): Promise<Content | undefined> {
  const text = await readFile(`${docs}proof/${name}.json`, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  return text === undefined ? undefined : (JSON.parse(text) as Content)
}

async function readRows(name: string): Promise<readonly Row[]> {
  const rows = await readJson(name)
  return Array.isArray(rows) ? rows : []
}

async function readResult(name: string): Promise<Result> {
  if (name === 'capacity') return renderCapacity(await readRows('growth'), await readRows('bench'))
  if (name !== 'picture') return readJson(name)
  const proof = await readJson<PictureProof>(name)
  return proof && renderPicture(proof)
}

/** The figures as they have to be, by the path of the file; none without measurements. */
export async function renderPlots(): Promise<ReadonlyMap<string, string>> {
  const rows = await readRows('growth')
  const drawn = rows.length > 0 ? await drawGrowth(rows) : new Map<string, string>()
  return new Map([...drawn].map(([file, svg]) => [`${docs}images/${file}`, svg]))
}

/** @returns the text of a page as it has to be. */
export async function renderStored(path: string): Promise<string> {
  const page = await readFile(path, 'utf8')
  const names = resultNames(page)
  const results = new Map(await Promise.all(names.map(async (name) => [name, await readResult(name)] as const)))
  return renderPage(page, (name) => results.get(name))
}

async function run(): Promise<void> {
  for (const path of pages) await writeFile(path, await renderStored(path))
  for (const [file, svg] of await renderPlots()) await writeFile(file, svg)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await run()
