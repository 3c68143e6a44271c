/** The acts of operators on a thing: forms with a reason on its page, which also shows the outcome. */
import type { ApiResult } from '../../client/api-error.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { type Notice, NoticeMessage, type Problem, ProblemMessage } from '../pages/messages.tsx'
import { problemOf } from '../pages/refusal-text.ts'
import { reasonOf } from './act-form.tsx'
import { withCode } from './refused-page.tsx'

/** What the last act did, if the page follows one. */
export interface Outcome {
  readonly notice?: Notice | undefined
  readonly problem?: Problem
  readonly status?: number
}

interface Acts<Name extends string> {
  /** The path of the page. */
  readonly pathOf: (visit: Visit) => string
  /** What the page says after an act. */
  readonly notices: Readonly<Record<Name, string>>
  readonly page: (visit: Visit, outcome: Outcome) => Promise<PageResult>
}

/** Sends an act to the API. The reason is for its audit. */
type SendAct = (visit: Visit, path: { readonly id: string }, reason: string) => Promise<ApiResult>

const missingReason: Problem = { code: 'reason_required', text: 'Nothing was changed. Enter a reason.' }

export function createActs<Name extends string>({ pathOf, notices, page }: Acts<Name>) {
  const show: PageHandler = (visit) => {
    const code = visit.query.get('done') ?? ''
    const text = Object.hasOwn(notices, code) ? notices[code as Name] : undefined
    return page(visit, { notice: text === undefined ? undefined : { code, text } })
  }
  const act =
    (name: Name, send: SendAct): PageHandler =>
    async (visit) => {
      const reason = reasonOf(visit.form)
      if (reason === undefined) return page(visit, { problem: missingReason, status: 400 })
      const result = await send(visit, { id: visit.params.id ?? '' }, reason)
      const { status } = result.response
      if (status < 300) return { redirectTo: `${pathOf(visit)}?done=${name}` }
      return page(visit, { problem: problemOf(result), status })
    }
  return { show, act }
}

export const OutcomeMessages = ({ outcome: { notice, problem } }: { readonly outcome: Outcome }) => (
  <>
    <NoticeMessage notice={notice} />
    <ProblemMessage problem={problem && withCode(problem)} />
  </>
)
