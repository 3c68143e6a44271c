/** Checks of `svc doctor`: each reads one part of the service, within a time limit, and changes nothing. */
import { withTimeout } from '../../platform/timeout.ts'

export type CheckStatus = 'ok' | 'warn' | 'fail'

export interface Finding {
  readonly status: CheckStatus
  /** What was seen, in one line. Contains no secret. */
  readonly detail: string
  /** What to do, in one line; null for nothing. */
  readonly fix: string | null
}

export interface Check {
  readonly name: string
  /** A rejection is a failed check. */
  readonly run: () => Promise<Finding>
}

export interface CheckResult extends Finding {
  readonly name: string
}

/** Something that is wrong. */
export interface Problem extends Finding {
  readonly status: 'warn' | 'fail'
  readonly fix: string
}

/** A check that takes longer has failed. */
const checkMillisMax = 15_000

/** Runs all checks side by side. One that hangs or rejects affects no other. */
export const runChecks = (checks: readonly Check[], millisMax = checkMillisMax): Promise<CheckResult[]> =>
  Promise.all(checks.map(async (check) => ({ name: check.name, ...(await runCheck(check, millisMax)) })))

async function runCheck({ run }: Check, millisMax: number): Promise<Finding> {
  try {
    const { status, detail, fix } = await withTimeout(millisMax, `no answer within ${millisMax / 1000} s`, run)
    return { status, detail: toLine(detail), fix: fix === null ? null : toLine(fix) }
  } catch (error) {
    const detail = `the check failed: ${toLine((error as Error).message)}`
    return { status: 'fail', detail, fix: 'Repair what the message names, and run the doctor again.' }
  }
}

const toLine = (text: string): string => text.replace(/\s*\n\s*/g, '; ').trim()

export const ok = (detail: string): Finding => ({ status: 'ok', detail, fix: null })
export const warn = (detail: string, fix: string): Problem => ({ status: 'warn', detail, fix })
export const fail = (detail: string, fix: string): Problem => ({ status: 'fail', detail, fix })

/** For a check that depends on another one, which names the fault. */
export const notChecked = (cause: string): Finding => warn(`not checked: ${cause}`, 'Repair that first.')

/**
 * One finding for several problems, as severe as the worst of them.
 * @param detail what was seen without them.
 * @param possible false or undefined for a problem that was not found.
 */
export function combine(detail: string, possible: readonly (Problem | false | undefined)[]): Finding {
  const problems = possible.filter((problem) => problem !== false && problem !== undefined)
  if (problems.length === 0) return ok(detail)
  const isFailed = problems.some(({ status }) => status === 'fail')
  return {
    status: isFailed ? 'fail' : 'warn',
    detail: problems.map((problem) => problem.detail).join('; '),
    fix: [...new Set(problems.map(({ fix }) => fix))].join(' '),
  }
}
