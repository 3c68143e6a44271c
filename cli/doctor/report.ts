/** The output of the doctor. */
import type { CheckResult, CheckStatus } from './check.ts'

const marks: Readonly<Record<CheckStatus, string>> = { ok: '✔', warn: '!', fail: '✖' }

/** One line for each check, with the fix below it, and a line that counts. */
export function formatReport(results: readonly CheckResult[]): string {
  const width = Math.max(...results.map(({ name }) => name.length))
  const lines = results.flatMap(({ name, status, detail, fix }) => [
    `${marks[status]} ${name.padEnd(width)}  ${detail}`,
    ...(fix === null ? [] : [`  ${' '.repeat(width)}  → ${fix}`]),
  ])
  const count = (status: CheckStatus) => results.filter((result) => result.status === status).length
  return `${[...lines, '', `${count('ok')} ok, ${count('warn')} to look at, ${count('fail')} failed`].join('\n')}\n`
}

export const formatJson = (results: readonly CheckResult[]): string =>
  `${JSON.stringify({ checks: results.map(({ name, status, detail, fix }) => ({ name, status, detail, fix })) }, null, 2)}\n`

/** 1 when a check failed. */
export const exitCodeOf = (results: readonly CheckResult[]): number =>
  results.some(({ status }) => status === 'fail') ? 1 : 0
