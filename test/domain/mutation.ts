/**
 * `npm run test:mutation`: changes the rules in `domain/`, one place at a time, and counts the changes that make no test fail.
 * Prints these changes and a score per file. The exit code is 1 when less than 90 percent of all changes make a test fail.
 *
 * `-- FILE …` checks some files only. `-- --json FILE` writes the scores as a list of `{ file, detected, undetected, score }`, with
 * the sum as `domain` at the end; a score is a percentage.
 */
import { readdirSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { Stryker } from '@stryker-mutator/core'

type MutantResult = Awaited<ReturnType<Stryker['runMutationTest']>>[number]

const scoreMin = 90

const { values, positionals } = parseArgs({ allowPositionals: true, options: { json: { type: 'string' } } })
const files =
  positionals.length > 0
    ? positionals
    : readdirSync('domain')
        .toSorted()
        .map((name) => `domain/${name}`)

/** As Stryker counts: a change that makes a test run without end is detected, and one that no test reaches is not. */
const isDetected = ({ status }: MutantResult) => status === 'Killed' || status === 'Timeout'
const isUndetected = ({ status }: MutantResult) => status === 'Survived' || status === 'NoCoverage'

function scoreOf(file: string, mutants: readonly MutantResult[]) {
  const detected = mutants.filter(isDetected).length
  const undetected = mutants.filter(isUndetected).length
  const score = detected + undetected === 0 ? 100 : (100 * detected) / (detected + undetected)
  return { file, detected, undetected, score: Math.round(score * 10) / 10 }
}

const startedAt = performance.now()
const scores: ReturnType<typeof scoreOf>[] = []
const all: MutantResult[] = []
for (const [index, file] of files.entries()) {
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  console.error(`[mutation] ${file}, ${index + 1} of ${files.length}, after ${seconds} s`)
  // By itself, since Stryker then runs only the tests that import this file.
  const mutants = await new Stryker({ mutate: [file] }).runMutationTest()
  scores.push(scoreOf(file, mutants))
  all.push(...mutants)
}
const sum = scoreOf('domain', all)
scores.push(sum)
console.table(scores)
if (values.json) writeFileSync(values.json, `${JSON.stringify(scores, null, 2)}\n`)
process.exitCode = sum.score < scoreMin ? 1 : 0
