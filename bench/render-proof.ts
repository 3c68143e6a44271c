/** `npm run proof`: writes the tables of docs/proof.md from docs/proof/*.json. */
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { type MutationReport, mutationRows } from './mutation-rows.ts'
import { type Result, renderPage, resultNames } from './proof-page.ts'
import { writeRows } from './rows.ts'

const docs = fileURLToPath(new URL('../docs/', import.meta.url))

export const proofPage = `${docs}proof.md`

/** The results by name, of all that a page shows. */
export async function readResults(page: string): Promise<ReadonlyMap<string, Result>> {
  const read = async (name: string): Promise<[string, Result]> => {
    const text = await readFile(`${docs}proof/${name}.json`, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    })
    return [name, text === undefined ? undefined : (JSON.parse(text) as Result)]
  }
  return new Map(await Promise.all(resultNames(page).map(read)))
}

/** @returns the page as it has to be. */
export async function renderProof(): Promise<string> {
  const page = await readFile(proofPage, 'utf8')
  const results = await readResults(page)
  return renderPage(page, (name) => results.get(name))
}

async function run(): Promise<void> {
  const { mutation } = new Command('npm run proof --')
    .description('Writes the tables of docs/proof.md from docs/proof/*.json.')
    .option('--mutation <file>', "first make docs/proof/mutation.json from the report of Stryker's json reporter")
    .parse()
    .opts<{ mutation?: string }>()
  if (mutation !== undefined) {
    const report = JSON.parse(await readFile(mutation, 'utf8')) as MutationReport
    await writeRows(`${docs}proof/mutation.json`, mutationRows(report))
  }
  await writeFile(proofPage, await renderProof())
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await run()
