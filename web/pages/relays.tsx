/** The relays of an account: which there are, how they are, and starting and stopping them. */
import type { ApiResponse } from '../api.ts'
import type { PageResult, PageRoute, Visit } from '../page.ts'
import type { Entitlement, Usage } from './account-plan.tsx'
import { PlanAlerts } from './plan-alerts.tsx'
import { RelaySession, type Session } from './relays-session.tsx'
import { problemIn, type Region, StartRelay, usedForm, type Wanted } from './relays-start.tsx'

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
    const wanted = {
      connectionId: visit.form.get('connection_id')?.trim() ?? '',
      region: visit.form.get('region') ?? '',
    }
    const answer = await visit.callApi<{ session?: Session }>(
      'POST',
      '/api/v1/relay/start?view=dock',
      { connection_id: wanted.connectionId, ...(wanted.region ? { region: wanted.region } : {}) },
      { 'Idempotency-Key': visit.form.get('idempotency_key') ?? '' },
    )
    if (answer.status >= 300) return relaysPage(visit, { problem: problemIn(answer), status: answer.status, wanted })
    // Sent again after its relay was stopped: the api answers that one, and starts nothing.
    if (answer.body.session?.state === 'stopped') return relaysPage(visit, { problem: usedForm, status: 409, wanted })
    return { redirectTo: '/relays' }
  },
}

export const stop: PageRoute = {
  method: 'POST',
  path: '/relays/:session_id/stop',
  caller: 'user',
  handle: async (visit) => {
    const sessionId = visit.params.session_id ?? ''
    const atOnce = visit.form.get('at_once') === 'yes'
    // A finger that taps twice would stop it at once; only the button that says so does.
    if (!atOnce && (await isStopping(visit, sessionId))) return { redirectTo: '/relays' }
    const answer = await visit.callApi('POST', '/api/v1/relay/stop?view=dock', {
      session_id: sessionId,
      immediate: atOnce,
    })
    if (answer.status < 300) return { redirectTo: '/relays' }
    // An id of another shape is nobody's relay either.
    const status = answer.status === 400 ? 404 : answer.status
    return relaysPage(visit, { problem: answer.status === 400 ? noSuchRelay : problemIn(answer), status })
  },
}

const noSuchRelay = 'You have no such relay.'

async function isStopping(visit: Visit, sessionId: string): Promise<boolean> {
  const { body } = await visit.callApi<{ sessions?: readonly Session[] }>('GET', '/api/v1/relay/active?view=dock')
  const session = body.sessions?.find((one) => one.session_id === sessionId)
  return session?.state === 'grace' && session.reason === 'stop_requested'
}

interface Refused {
  readonly problem: string
  readonly status: number
  readonly wanted?: Wanted
}

async function relaysPage(visit: Visit, refused?: Refused): Promise<PageResult> {
  const [live, summary, manifest, capacity] = await Promise.all([
    visit.callApi<{ sessions?: readonly Session[] }>('GET', '/api/v1/relay/active'),
    visit.callApi<{ entitlement?: Entitlement; usage?: Usage }>('GET', '/api/v1/auth/session?view=dock'),
    visit.callApi<{ regions?: readonly Region[] }>('GET', '/api/v1/relay/manifest'),
    visit.callApi<{ status?: string }>('GET', '/api/v1/capacity/status'),
  ])
  const { sessions } = live.body
  const problem = refused?.problem ?? (sessions ? undefined : problemIn(live))
  return {
    title: 'Relays',
    status: refused?.status ?? (sessions ? 200 : live.status),
    scripts: ['relays.js', 'connection-kit.js'],
    page: (
      <Relays
        problem={problem}
        sessions={sessions}
        entitlement={summary.body.entitlement}
        usage={summary.body.usage}
        regions={manifest.body.regions ?? []}
        capacity={capacityOf(capacity)}
        wanted={refused?.wanted}
      />
    ),
  }
}

const capacities: Readonly<Record<string, string>> = {
  available: 'There is room for new relays.',
  limited: 'Few relays are left.',
  full: 'All relays are taken just now.',
}

/** How much room there is, in words; nothing when that is not known. */
const capacityOf = ({ body }: ApiResponse<{ status?: string }>): string | undefined => capacities[body.status ?? '']

interface Shown {
  readonly problem?: string | undefined
  /** Unknown when the api did not tell. */
  readonly sessions?: readonly Session[] | undefined
  readonly entitlement?: Entitlement | undefined
  readonly usage?: Usage | undefined
  readonly regions: readonly Region[]
  readonly capacity?: string | undefined
  readonly wanted?: Wanted | undefined
}

const Relays = ({ problem, sessions, entitlement, usage, regions, capacity, wanted }: Shown) => (
  <>
    <div class="row apart">
      <h1 id="relays" tabIndex={-1}>
        Relays
      </h1>
      {entitlement ? <InUse entitlement={entitlement} /> : null}
    </div>
    {problem ? (
      <p class="problem" role="alert">
        {problem}
      </p>
    ) : null}
    {entitlement && usage ? <PlanAlerts entitlement={entitlement} usage={usage} payAt="/account" /> : null}
    <div class="row apart news">
      {/* The page's script tells here what changed, in a place that is kept for it. */}
      <p role="status" data-news />
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
    {entitlement && sessions ? (
      <StartRelay
        entitlement={entitlement}
        regions={regions}
        taken={sessions.map((one) => one.connection_id)}
        capacity={capacity}
        wanted={wanted}
      />
    ) : null}
  </>
)

const InUse = ({ entitlement }: { readonly entitlement: Entitlement }) => {
  const { active_managed_conns: used, max_concurrent_conns: limit } = entitlement
  return (
    <span class="muted" data-part="in-use" data-version={`${used}/${limit}`}>
      {limit > 0 ? `${used} of ${limit} in use` : null}
    </span>
  )
}

const NoRelays = () => (
  <section class="card" data-session="none" aria-label="No relay">
    <p>
      <strong>You have no relay running.</strong>
    </p>
    <p>
      A relay takes the stream of your phone or encoder, over several networks at once, and hands it to OBS. Start one,
      and connect your software to it.
    </p>
  </section>
)
