/** The relays page: lists live relays, and starts and stops them. */
import { headerText } from '../api.ts'
import type { Session } from '../api-replies.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { formatBitrate } from '../stream-text.ts'
import { checklistOf } from './first-steps.tsx'
import type { Problem } from './messages.tsx'
import { problemPage } from './problem.tsx'
import { findRecentlyEnded } from './relays-ended.tsx'
import { pingOriginsOf } from './relays-regions.tsx'
import { formAlreadyUsed, relayProblemOf, type StartFormValues } from './relays-start.tsx'
import { Relays } from './relays-view.tsx'

export const show: PageHandler = (visit) => relaysPage(visit)

export const start: PageHandler = async (visit) => {
  const values = {
    connectionId: visit.form.get('connection_id')?.trim() ?? '',
    region: visit.form.get('region') ?? '',
  }
  const key = headerText(visit.form.get('idempotency_key') ?? '')
  const result = await visit.api.POST('/api/v1/relay/start', {
    params: { query: { view: 'dock' }, header: { 'Idempotency-Key': key } },
    body: { connection_id: values.connectionId, ...(values.region ? { region: values.region } : {}) },
  })
  const { status } = result.response
  if (status >= 300) return relaysPage(visit, { problem: relayProblemOf(result), status, values })
  // The key belongs to an earlier submission whose relay has stopped: the API returns that relay and starts none.
  if (result.data?.session?.state === 'stopped')
    return relaysPage(visit, { problem: formAlreadyUsed, status: 409, values })
  return {
    redirectTo: isAlreadyRunning(visit, result.response)
      ? `/relays?running=${encodeURIComponent(values.connectionId)}`
      : '/relays',
  }
}

/** Whether the API returned a relay that an earlier form, or the plugin, has started. */
const isAlreadyRunning = (visit: Visit, { status, headers }: Response): boolean =>
  status === 200 && !headers.has('idempotent-replayed') && visit.form.get('keep_running') !== 'yes'

export const stop: PageHandler = async (visit) => {
  const sessionId = visit.params.session_id ?? ''
  const isImmediate = visit.form.get('at_once') === 'yes'
  // A second stop would stop the relay at once. A double click must not, only the “Stop now” button.
  if (!isImmediate && (await isStopping(visit, sessionId))) return { redirectTo: '/relays' }
  const body = { session_id: sessionId, immediate: isImmediate }
  const result = await visit.api.POST('/api/v1/relay/stop', { params: { query: { view: 'dock' } }, body })
  const { status } = result.response
  if (status < 300) return { redirectTo: '/relays' }
  // The API replies 400 to an id that is not a UUID.
  if (status === 400) return relaysPage(visit, { problem: relayNotFound, status: 404 })
  return relaysPage(visit, { problem: relayProblemOf(result), status })
}

/** A page of the relay, whose address is valid for some minutes only. */
export const showLinks: PageHandler = async (visit) => {
  const { data } = await visit.api.GET('/api/v1/relay/active')
  const session = data?.sessions?.find(({ session_id }) => session_id === visit.params.session_id)
  const url = session?.connect?.links_url
  return url === undefined ? problemPage('not_found') : { redirectTo: url }
}

const relayNotFound: Problem = { code: 'not_found', text: 'This relay was not found.' }

async function isStopping(visit: Visit, sessionId: string): Promise<boolean> {
  const { data } = await visit.api.GET('/api/v1/relay/active', { params: { query: { view: 'dock' } } })
  const session = data?.sessions?.find(({ session_id }) => session_id === sessionId)
  return session?.state === 'grace' && session.reason === 'stop_requested'
}

interface Refusal {
  readonly problem: Problem
  readonly status: number
  readonly values?: StartFormValues
}

async function relaysPage(visit: Visit, refused?: Refusal): Promise<PageResult> {
  const { live, summary, manifest, capacity, ended, bitrates } = await fetchRelays(visit)
  const sessions = live.data?.sessions
  const hasFailedPayment = summary.data?.entitlement?.reason_code === 'plan_required' && (await isPaymentFailed(visit))
  const liveNames = sessions?.map(({ connection_id }) => connection_id) ?? []
  const regions = manifest.data?.regions ?? []
  // Only the name of a live relay is shown, since a link can contain any.
  const running = liveNames.find((name) => name === visit.query.get('running'))
  return {
    name: 'relays',
    title: titleOf(sessions ?? []),
    status: refused?.status ?? (sessions ? 200 : live.response.status),
    section: 'relays',
    styles: ['relays.css', 'charts.css'],
    scripts: ['relays.js', 'connection-kit.js', 'region-latency.js'],
    connectTo: pingOriginsOf(regions, visit.origin),
    page: (
      <Relays
        origin={visit.origin}
        canConnectApps={visit.config.canConnectApps}
        problem={refused?.problem ?? (sessions ? undefined : relayProblemOf(live))}
        alreadyRunning={running}
        sessions={sessions}
        bitrates={bitrates.data?.sessions ?? []}
        ended={findRecentlyEnded(visit, ended.data?.sessions ?? [], liveNames)}
        unverifiedEmail={
          summary.data?.user?.email_verified === false ? (summary.data.user.email ?? undefined) : undefined
        }
        checklist={checklistOf(visit, summary.data?.user, summary.data?.first_steps)}
        entitlement={summary.data?.entitlement}
        hasFailedPayment={hasFailedPayment}
        usage={summary.data?.usage}
        regions={regions}
        capacities={capacity.data?.regions ?? []}
        values={refused?.values}
      />
    ),
  }
}

/** What a tab in the background shows. `relays.js` keeps it up to date. */
function titleOf(sessions: readonly Session[]): string {
  const isGone = ({ signal }: Session) =>
    signal?.relay.code === 'lost' || signal?.relay.code === 'silent' || signal?.phone.code === 'lost'
  if (sessions.some(isGone)) return '▲ no video · Relays'
  const kbps = sessions.reduce((sum, { ingest }) => sum + (ingest?.publishing ? ingest.bitrate_kbps : 0), 0)
  return kbps > 0 ? `● ${formatBitrate(kbps)} · Relays` : 'Relays'
}

/** Only asked for accounts without a plan, whose plan may have ended because of it. */
const isPaymentFailed = async (visit: Visit): Promise<boolean> =>
  (await visit.api.GET('/api/v1/billing/subscription')).data?.last_payment_failed === true

/** More than are shown, since the visitor may have hidden the last ones. */
const endedMax = 10

async function fetchRelays(visit: Visit) {
  const [live, summary, manifest, capacity, ended, bitrates] = await Promise.all([
    visit.api.GET('/api/v1/relay/active'),
    visit.api.GET('/api/v1/auth/session', { params: { query: { view: 'dock' } } }),
    visit.api.GET('/api/v1/relay/manifest'),
    visit.api.GET('/api/v1/capacity/status'),
    visit.api.GET('/api/v1/relay/sessions', { params: { query: { limit: endedMax } } }),
    visit.api.GET('/api/v1/relay/bitrates'),
  ])
  return { live, summary, manifest, capacity, ended, bitrates }
}
