/** What the relays page shows. */
import type { Reply } from '../../client/reply.ts'
import type { EndedSession, Entitlement, Region, Session, Usage } from '../api-replies.ts'
import { Icon } from '../icons.tsx'
import { type Checklist, FirstStepsList } from './first-steps.tsx'
import { type Problem, ProblemMessage } from './messages.tsx'
import { PlanAlerts } from './plan-alerts.tsx'
import { RecentlyEnded } from './relays-ended.tsx'
import { ConnectObs } from './relays-obs.tsx'
import type { RegionCapacity } from './relays-regions.tsx'
import { RelaySession } from './relays-session.tsx'
import { blockedBy, type StartFormValues, StartRelay } from './relays-start.tsx'

/** The parts that the API did not reply are undefined or empty. */
interface RelaysProps {
  /** Scheme, host and port of this site. */
  readonly origin: string
  /** Whether this service has a provider for apps. */
  readonly canConnectApps: boolean
  readonly problem?: Problem | undefined
  /** The address of the account, until its owner has opened the link that was mailed to it. */
  readonly unverifiedEmail?: string | undefined
  /** The name of a relay that was to be started although it is live. */
  readonly alreadyRunning?: string | undefined
  readonly sessions?: readonly Session[] | undefined
  readonly bitrates: Reply<'get', '/relay/bitrates'>['sessions']
  /** Relays that ended a short time ago. */
  readonly ended: readonly EndedSession[]
  readonly checklist: Checklist | undefined
  readonly entitlement?: Entitlement | undefined
  readonly hasFailedPayment: boolean
  readonly usage?: Usage | undefined
  readonly regions: readonly Region[]
  readonly capacities: readonly RegionCapacity[]
  readonly values?: StartFormValues | undefined
}

export const Relays = (props: RelaysProps) => {
  const { problem, unverifiedEmail, alreadyRunning, sessions, ended, entitlement, usage, regions, capacities, values } =
    props
  const canStart = entitlement !== undefined && blockedBy(entitlement) === undefined
  return (
    <>
      <Head entitlement={entitlement} />
      <ProblemMessage problem={problem} />
      {alreadyRunning === undefined ? null : <AlreadyRunning name={alreadyRunning} />}
      {/* The checklist says the same. While a relay runs the page is about its stream. */}
      {unverifiedEmail !== undefined && sessions?.length === 0 && !props.checklist ? (
        <VerifyEmail email={unverifiedEmail} />
      ) : null}
      {entitlement && usage ? <PlanAlerts entitlement={entitlement} usage={usage} payUrl="/account" /> : null}
      <FirstStepsList checklist={props.checklist} sessions={sessions ?? []} />
      {sessions ? <RecentlyEnded sessions={ended} canStart={canStart} /> : null}
      <div class="grid-2 relays">
        <div class="live-relays" data-relays>
          {sessions?.map((session) => (
            <RelaySession
              key={session.session_id}
              session={session}
              region={regions.find(({ region: name }) => name === session.region)?.display_name ?? session.region}
              bitrates={
                props.bitrates.find(({ session_id }) => session_id === session.session_id)?.recent_bitrate ?? []
              }
            />
          ))}
          {sessions?.length === 0 ? <NoRelays /> : null}
        </div>
        {entitlement && sessions ? (
          <StartRelay
            entitlement={entitlement}
            hasFailedPayment={props.hasFailedPayment}
            regions={regions}
            capacities={capacities}
            connectionIds={sessions.map(({ connection_id }) => connection_id)}
            values={values}
          />
        ) : null}
      </div>
      <ConnectObs origin={props.origin} canConnectApps={props.canConnectApps} sessions={sessions ?? []} />
    </>
  )
}

const Head = ({ entitlement }: { readonly entitlement: Entitlement | undefined }) => (
  <div class="page-head">
    <h1 id="relays" tabIndex={-1}>
      Relays
    </h1>
    <div class="row">
      {/* `relays.js` announces changes to screen readers. */}
      <p class="unseen" role="status" data-announcements />
      <span class="muted" role="status" data-freshness />
      {entitlement ? <RelaysInUse entitlement={entitlement} /> : null}
      <a class="link" href="/connections">
        Connections
      </a>
      <a class="link" href="/relays">
        <Icon name="refresh-cw" />
        Refresh
      </a>
    </div>
  </div>
)

const RelaysInUse = ({ entitlement }: { readonly entitlement: Entitlement }) => {
  const { active_managed_conns: used, max_concurrent_conns: limit } = entitlement
  return (
    <span class="muted" data-part="in-use" data-version={`${used}/${limit}`}>
      {limit > 0 ? `${used} of ${limit} in use` : null}
    </span>
  )
}

const VerifyEmail = ({ email }: { readonly email: string }) => (
  <p class="warning" role="status" data-notice="email_unverified">
    Check your email: open the link that we sent to {email} to verify the address. You can have it sent again under{' '}
    <a href="/account/security">Security</a>.
  </p>
)

const AlreadyRunning = ({ name }: { readonly name: string }) => (
  <p class="warning" role="status" data-notice="relay_already_running">
    A relay named “{name}” is already running, so no other one was started. Choose another name for a further relay.
  </p>
)

const NoRelays = () => (
  <section class="card empty" data-session="none" aria-labelledby="no-relays">
    <Icon name="radio" />
    <h2 id="no-relays">No relays running</h2>
    <p>
      A relay receives the stream from your phone or encoder over several networks at once and forwards it to OBS. Start
      a relay, then connect your software to it.
    </p>
  </section>
)
