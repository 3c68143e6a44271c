/**
 * For `.ci/run`: prints the summary of the JSON reports in the arguments. Exits with 1 when a test or a suite has
 * failed.
 */
import { readFile } from 'node:fs/promises'
import { type SuiteReport, summarize } from './summary.ts'

const read = async (file: string): Promise<SuiteReport | undefined> => {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as SuiteReport
  } catch {
    return undefined
  }
}

const { lines, hasFailed } = summarize(await Promise.all(process.argv.slice(2).map(read)), process.cwd())
for (const line of lines) process.stdout.write(`${line}\n`)
process.exitCode = hasFailed ? 1 : 0
