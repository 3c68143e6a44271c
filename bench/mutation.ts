/**
 * `npm run test:mutation`: changes the rules in `domain/`, one place at a time, and counts the changes that make a test
 * fail. Prints the others, and a score per file. The exit code is 1 when the score of all files is below its target.
 */
import { readdirSync } from 'node:fs'
import { Stryker } from '@stryker-mutator/core'
import { Command } from 'commander'
import { jsonOption } from './arguments.ts'
import { type MutationReport, mutationRows } from './mutation-rows.ts'
import { writeRows } from './rows.ts'
import { formatTable } from './table.ts'

const program = new Command('npm run test:mutation --')
  .description('Changes the rules in domain/, one place at a time, and counts the changes that make a test fail.')
  .argument('[file...]', 'files to change; all of domain/ by default')
  .addOption(jsonOption)
  .parse()
const { json } = program.opts<{ json?: string }>()
const files =
  program.args.length > 0
    ? program.args
    : readdirSync('domain')
        .toSorted()
        .map((name) => `domain/${name}`)

const startedAt = performance.now()
const results: Record<string, MutationReport['files'][string]> = {}
for (const [index, file] of files.entries()) {
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  console.error(`[mutation, ${seconds} s] ${file}, ${index + 1} of ${files.length}`)
  // By itself, since Stryker then runs only the tests that import this file.
  results[file] = { mutants: await new Stryker({ mutate: [file] }).runMutationTest() }
}
const rows = mutationRows({ files: results })
console.log(formatTable(rows))
if (json) await writeRows(json, rows)
process.exitCode = rows.every(({ met }) => met) ? 0 : 1
