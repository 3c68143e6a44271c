/** One relay session: its row, its workflow, its transitions and its video, and the acts of operators on it. */
import type { ComponentChildren } from 'preact'
import { unchecked } from '../api-client.ts'
import type { PageResult, Visit } from '../page.ts'
import { createActs, type Outcome, OutcomeMessages } from './acts.tsx'
import type { OperatorSession, OperatorSessionDetail } from './operator-replies.ts'
import { refusedPage } from './refused-page.tsx'
import { publicReasonOf, SessionActs } from './session-acts.tsx'
import { SessionFacts } from './session-facts.tsx'
import { SessionIngest } from './session-ingest.tsx'
import { SessionStreamEvents } from './session-stream-events.tsx'
import { SessionTransitions } from './session-transitions.tsx'
import { SessionWorkflow } from './session-workflow.tsx'
import { SessionState } from './state-badges.tsx'

const { show, act } = createActs({
  pathOf: ({ params }) => `/operator/sessions/${params.id}`,
  notices: {
    disconnect: 'The relay is disconnected. If it is still shown as live, reload this page in a moment.',
    transition: 'The transition was made.',
  },
  page: sessionPage,
})

export { show }

export const disconnect = act('disconnect', ({ form, operatorApi }, path, reason) =>
  operatorApi.POST('/api/v1/admin/sessions/{id}/disconnect', {
    params: { path },
    body: { reason, ...publicReasonOf(form) },
  }),
)
export const transition = act('transition', ({ form, operatorApi }, path, reason) => {
  const body = { to: unchecked<OperatorSession['state']>(form.get('to') ?? ''), reason, ...publicReasonOf(form) }
  return operatorApi.POST('/api/v1/admin/sessions/{id}/transition', { params: { path }, body })
})

async function sessionPage(visit: Visit, outcome: Outcome): Promise<PageResult> {
  const path = { id: visit.params.id ?? '' }
  const result = await visit.operatorApi.GET('/api/v1/admin/sessions/{id}', { params: { path } })
  if (!result.data) return refusedPage('relays', 'Relay session', result)
  return {
    name: 'operator-session',
    title: `Relay ${result.data.session.connection_id}`,
    console: 'relays',
    styles: ['charts.css'],
    status: outcome.status ?? 200,
    page: (
      <SessionPage detail={result.data}>
        <OutcomeMessages outcome={outcome} />
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
          <SessionStreamEvents events={detail.stream_events} />
        </div>
      </div>
      <SessionActs session={session} />
    </>
  )
}
