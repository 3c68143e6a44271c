/** The relays page: lists live relays, and starts and stops them. */
import type { ApiResponse } from '../api.ts'
import type { AccountSummary, Entitlement, Region, Reply, Session, Usage } from '../api-replies.ts'
import type { PageResult, PageRoute, Visit } from '../page.ts'
import { type Problem, ProblemMessage } from './messages.tsx'
import { PlanAlerts } from './plan-alerts.tsx'
import { RelaySession } from './relays-session.tsx'
import { formAlreadyUsed, relayProblemOf, type StartFormValues, StartRelay } from './relays-start.tsx'

export const show: PageRoute = {
  method: 'GET',
  path: '/relays',
  caller: 'user',
  handle: (visit) => relaysPage(visit),
}

export const start: PageRoute = {
  method: 'POST',
  path: '/relays/start',
  caller: 'user',
  handle: async (visit) => {
    const values = {
      connectionId: visit.form.get('connection_id')?.trim() ?? '',
      region: visit.form.get('region') ?? '',
    }
    const response = await visit.callApi<Partial<Reply<'post', '/relay/start'>>>(
      'POST',
      '/api/v1/relay/start?view=dock',
      { connection_id: values.connectionId, ...(values.region ? { region: values.region } : {}) },
      { 'Idempotency-Key': visit.form.get('idempotency_key') ?? '' },
    )
    const { status } = response
    if (status >= 300) return relaysPage(visit, { problem: relayProblemOf(response), status, values })
    // The key belongs to an earlier submission whose relay has stopped: the API returns that relay and starts none.
    if (response.body.session?.state === 'stopped')
      return relaysPage(visit, { problem: formAlreadyUsed, status: 409, values })
    return { redirectTo: '/relays' }
  },
}

export const stop: PageRoute = {
  method: 'POST',
  path: '/relays/:session_id/stop',
  caller: 'user',
  handle: async (visit) => {
    const sessionId = visit.params.session_id ?? ''
    const isImmediate = visit.form.get('at_once') === 'yes'
    // A second stop would stop the relay at once. A double click must not, only the “Stop now” button.
    if (!isImmediate && (await isStopping(visit, sessionId))) return { redirectTo: '/relays' }
    const body = { session_id: sessionId, immediate: isImmediate }
    const response = await visit.callApi('POST', '/api/v1/relay/stop?view=dock', body)
    if (response.status < 300) return { redirectTo: '/relays' }
    // The API replies 400 to an id that is not a UUID.
    if (response.status === 400) return relaysPage(visit, { problem: relayNotFound, status: 404 })
    return relaysPage(visit, { problem: relayProblemOf(response), status: response.status })
  },
}

const relayNotFound: Problem = { code: 'not_found', text: 'This relay was not found.' }

async function isStopping(visit: Visit, sessionId: string): Promise<boolean> {
  const { body } = await visit.callApi<Partial<Reply<'get', '/relay/active'>>>('GET', '/api/v1/relay/active?view=dock')
  const session = body.sessions?.find((one) => one.session_id === sessionId)
  return session?.state === 'grace' && session.reason === 'stop_requested'
}

interface Refusal {
  readonly problem: Problem
  readonly status: number
  readonly values?: StartFormValues
}

async function relaysPage(visit: Visit, refused?: Refusal): Promise<PageResult> {
  const [live, summary, manifest, capacity] = await Promise.all([
    visit.callApi<Partial<Reply<'get', '/relay/active'>>>('GET', '/api/v1/relay/active'),
    visit.callApi<Partial<AccountSummary>>('GET', '/api/v1/auth/session?view=dock'),
    visit.callApi<Partial<Reply<'get', '/relay/manifest'>>>('GET', '/api/v1/relay/manifest'),
    visit.callApi<Partial<Reply<'get', '/capacity/status'>>>('GET', '/api/v1/capacity/status'),
  ])
  const { sessions } = live.body
  return {
    name: 'relays',
    title: 'Relays',
    status: refused?.status ?? (sessions ? 200 : live.status),
    section: 'relays',
    styles: ['relays.css'],
    scripts: ['relays.js', 'connection-kit.js'],
    page: (
      <Relays
        problem={refused?.problem ?? (sessions ? undefined : relayProblemOf(live))}
        sessions={sessions}
        entitlement={summary.body.entitlement}
        usage={summary.body.usage}
        regions={manifest.body.regions ?? []}
        capacityText={describeCapacity(capacity)}
        values={refused?.values}
      />
    ),
  }
}

const capacityTexts: Readonly<Record<string, string>> = {
  available: 'Relays are available.',
  limited: 'Few relays are available.',
  full: 'No relays are available right now.',
}

/** Undefined when the API did not reply with a status. */
const describeCapacity = ({ body }: ApiResponse<{ status?: string }>): string | undefined =>
  capacityTexts[body.status ?? '']

/** The parts that the API did not reply are undefined. */
interface RelaysProps {
  readonly problem?: Problem | undefined
  readonly sessions?: readonly Session[] | undefined
  readonly entitlement?: Entitlement | undefined
  readonly usage?: Usage | undefined
  readonly regions: readonly Region[]
  readonly capacityText?: string | undefined
  readonly values?: StartFormValues | undefined
}

const Relays = ({ problem, sessions, entitlement, usage, regions, capacityText, values }: RelaysProps) => (
  <>
    <div class="row apart">
      <h1 id="relays" tabIndex={-1}>
        Relays
      </h1>
      {entitlement ? <RelaysInUse entitlement={entitlement} /> : null}
    </div>
    <ProblemMessage problem={problem} />
    {entitlement && usage ? <PlanAlerts entitlement={entitlement} usage={usage} payUrl="/account" /> : null}
    <div class="row apart announcements">
      {/* `relays.js` announces changes here. The space is reserved, so that nothing moves. */}
      <p role="status" data-announcements />
      <p class="muted row">
        <span role="status" data-freshness />
        <a class="link" href="/relays">
          Refresh
        </a>
      </p>
    </div>
    <div class="relays" data-relays>
      {sessions?.map((session) => (
        <RelaySession
          key={session.session_id}
          session={session}
          region={regions.find((one) => one.region === session.region)?.display_name ?? session.region}
        />
      ))}
      {sessions?.length === 0 ? <NoRelays /> : null}
    </div>
    <p>
      <a class="link" href="/history">
        Ended relays
      </a>
    </p>
    {entitlement && sessions ? (
      <StartRelay
        entitlement={entitlement}
        regions={regions}
        connectionIds={sessions.map((one) => one.connection_id)}
        capacityText={capacityText}
        values={values}
      />
    ) : null}
  </>
)

const RelaysInUse = ({ entitlement }: { readonly entitlement: Entitlement }) => {
  const { active_managed_conns: used, max_concurrent_conns: limit } = entitlement
  return (
    <span class="muted" data-part="in-use" data-version={`${used}/${limit}`}>
      {limit > 0 ? `${used} of ${limit} in use` : null}
    </span>
  )
}

const NoRelays = () => (
  <section class="card" data-session="none" aria-label="No relays">
    <p>
      <strong>No relays running</strong>
    </p>
    <p>
      A relay receives the stream from your phone or encoder over several networks at once and forwards it to OBS. Start
      a relay, then connect your software to it.
    </p>
  </section>
)
