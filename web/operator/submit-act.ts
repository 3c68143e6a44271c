/** Carries out an operator's act from its form. */
import type { ApiResult } from '../../client/api-error.ts'
import type { PageResult, Visit } from '../page.ts'
import type { Problem } from '../pages/messages.tsx'
import { problemOf } from '../pages/refusal-text.ts'
import { reasonOf } from './act-form.tsx'

interface Act {
  /** Sends the act to the API. */
  readonly send: (reason: string) => Promise<ApiResult>
  /** The page that shows the result. */
  readonly redirectTo: string
  /** Shows the page of the form again, with the problem. */
  readonly showProblem: (problem: Problem, status: number) => Promise<PageResult> | PageResult
}

const missingReason: Problem = { code: 'reason_required', text: 'Nothing was changed. Enter a reason.' }

/** Requires a reason, which the API records in the audit. */
export async function submitAct(visit: Visit, act: Act): Promise<PageResult> {
  const reason = reasonOf(visit.form)
  if (reason === undefined) return act.showProblem(missingReason, 400)
  const result = await act.send(reason)
  const { status } = result.response
  return status < 300 ? { redirectTo: act.redirectTo } : act.showProblem(problemOf(result), status)
}
