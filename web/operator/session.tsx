/** One relay session: its row, its workflow, its transitions and its video, and the acts of operators on it. */
import type { ComponentChildren } from 'preact'
import type { ApiResult } from '../../client/api-error.ts'
import { unchecked } from '../api-client.ts'
import type { PageResult, PageRoute, Visit } from '../page.ts'
import { NoticeMessage, type Problem, ProblemMessage } from '../pages/messages.tsx'
import type { OperatorSession, OperatorSessionDetail } from './operator-replies.ts'
import { refusedPage, withCode } from './refused-page.tsx'
import { SessionActs } from './session-acts.tsx'
import { SessionFacts } from './session-facts.tsx'
import { SessionIngest } from './session-ingest.tsx'
import { SessionTransitions } from './session-transitions.tsx'
import { SessionWorkflow } from './session-workflow.tsx'
import { SessionState } from './state-badges.tsx'
import { submitAct } from './submit-act.ts'

const path = '/operator/sessions/:id'

const notices: Readonly<Record<string, string>> = {
  disconnect: 'The relay is disconnected. If it is still shown as live, reload this page in a moment.',
  transition: 'The transition was made.',
}

export const show: PageRoute = {
  method: 'GET',
  path,
  caller: 'operator',
  handle: (visit) => sessionPage(visit, { done: visit.query.get('done') ?? '' }),
}

type SendAct = (visit: Visit, path: { readonly id: string }, reason: string) => Promise<ApiResult>

const actOf = (name: string, send: SendAct): PageRoute => ({
  method: 'POST',
  path: `${path}/${name}`,
  caller: 'operator',
  returnTo: '/operator/sessions',
  handle: (visit) => {
    const { id = '' } = visit.params
    return submitAct(visit, {
      send: (reason) => send(visit, { id }, reason),
      redirectTo: `/operator/sessions/${id}?done=${name}`,
      showProblem: (problem, status) => sessionPage(visit, { problem: withCode(problem), status }),
    })
  },
})

export const disconnect = actOf('disconnect', ({ operatorApi }, path, reason) =>
  operatorApi.POST('/api/v1/admin/sessions/{id}/disconnect', { params: { path }, body: { reason } }),
)
export const transition = actOf('transition', ({ form, operatorApi }, path, reason) => {
  const body = { to: unchecked<OperatorSession['state']>(form.get('to') ?? ''), reason }
  return operatorApi.POST('/api/v1/admin/sessions/{id}/transition', { params: { path }, body })
})

interface Outcome {
  readonly done?: string
  readonly problem?: Problem
  readonly status?: number
}

async function sessionPage(visit: Visit, { done = '', problem, status = 200 }: Outcome): Promise<PageResult> {
  const path = { id: visit.params.id ?? '' }
  const result = await visit.operatorApi.GET('/api/v1/admin/sessions/{id}', { params: { path } })
  if (!result.data) return refusedPage('relays', 'Relay session', result)
  const text = Object.hasOwn(notices, done) ? notices[done] : undefined
  return {
    name: 'operator-session',
    title: `Relay ${result.data.session.connection_id}`,
    console: 'relays',
    styles: ['charts.css'],
    status,
    page: (
      <SessionPage detail={result.data}>
        <NoticeMessage notice={text === undefined ? undefined : { code: done, text }} />
        <ProblemMessage problem={problem} />
      </SessionPage>
    ),
  }
}

interface SessionPageProps {
  readonly detail: OperatorSessionDetail
  readonly children: ComponentChildren
}

const SessionPage = ({ detail, children }: SessionPageProps) => {
  const { session } = detail
  return (
    <>
      <div class="page-head">
        <h1>{session.connection_id}</h1>
        <p class="row">
          <SessionState state={session.state} />
        </p>
      </div>
      {children}
      <div class="grid-2" data-refreshes="session">
        <div class="stack">
          <SessionFacts session={session} />
          <SessionIngest session={session} bitrates={detail.recent_bitrate} />
        </div>
        <div class="stack">
          <SessionWorkflow detail={detail} />
          <SessionTransitions session={session} transitions={detail.transitions} />
        </div>
      </div>
      <SessionActs session={session} />
    </>
  )
}
