/**
 * `npm run test:mutation -- --json FILE`: runs the mutation check of stryker.config.mjs and writes its score per file, as a list of
 * `{ file, detected, undetected, score }` with the sum as `domain` at the end. A score is a percentage.
 */
import { writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { parseArgs } from 'node:util'
import { Stryker } from '@stryker-mutator/core'

const { values } = parseArgs({ options: { json: { type: 'string' } } })
const mutants = await new Stryker({}).runMutationTest()

/** As Stryker counts: a mutant that runs without end is detected, and one that no test reaches is not. */
const detectedStatuses = ['Killed', 'Timeout']
const undetectedStatuses = ['Survived', 'NoCoverage']

function scoreOf(file: string, statuses: readonly string[]) {
  const detected = statuses.filter((status) => detectedStatuses.includes(status)).length
  const undetected = statuses.filter((status) => undetectedStatuses.includes(status)).length
  const score = detected + undetected === 0 ? 100 : (100 * detected) / (detected + undetected)
  return { file, detected, undetected, score: Math.round(score * 10) / 10 }
}

const statusesByFile = new Map<string, string[]>()
for (const { fileName, status } of mutants) {
  const file = relative(process.cwd(), fileName)
  statusesByFile.set(file, [...(statusesByFile.get(file) ?? []), status])
}
const scores = [
  ...[...statusesByFile].toSorted().map(([file, statuses]) => scoreOf(file, statuses)),
  scoreOf('domain', [...statusesByFile.values()].flat()),
]
if (values.json) writeFileSync(values.json, `${JSON.stringify(scores, null, 2)}\n`)
