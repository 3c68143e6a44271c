/** The form that starts a relay, and the messages when a start or stop is refused. */
import { randomUUID } from 'node:crypto'
import type { ApiResult } from '../../client/api-error.ts'
import { addonsMax, relayLimit } from '../../domain/billing/plans.ts'
import type { Entitlement, Region } from '../api-replies.ts'
import { Icon } from '../icons.tsx'
import type { Problem } from './messages.tsx'
import { problemOf } from './refusal-text.ts'
import { type RegionCapacity, RegionChoice } from './relays-regions.tsx'
import { TrialTime } from './trial.tsx'

/** The values of a submitted start form. */
export interface StartFormValues {
  readonly connectionId: string
  readonly region: string
}

/** Rendered into each form, so that a form that is submitted twice starts one relay. */
export const newIdempotencyKey = (): string => randomUUID()

/** Why no relay can be started, by the entitlement's `reason_code`. */
const blockedTexts = {
  plan_required:
    'Your plan doesn’t include managed relays. The plugin for OBS works with a relay of your own on every plan.',
  operator_disabled: 'Relays are disabled for this account. Contact support.',
  deletion_scheduled: 'This account is going to be deleted. Restore it on the security page to start relays.',
  usage_exhausted: 'You’ve used all relay time of this cycle. Your account page shows when the next cycle begins.',
} as const

const trialBusyText = 'Your free test time is for one relay at a time. Stop it to start another.'
const limitReachedText = 'All relays of your plan are in use. Stop one to start another.'

interface StartRelayProps {
  readonly entitlement: Entitlement
  /** Whether the latest payment for a plan failed. */
  readonly hasFailedPayment: boolean
  readonly regions: readonly Region[]
  readonly capacities: readonly RegionCapacity[]
  /** Connections that have a live relay. */
  readonly connectionIds: readonly string[]
  /** Values to show again after a refusal. */
  readonly values?: StartFormValues | undefined
}

export function StartRelay(props: StartRelayProps) {
  const { entitlement, hasFailedPayment, regions, capacities, connectionIds, values } = props
  const name = values?.connectionId ?? unusedName(connectionIds)
  const blocked = blockedBy(entitlement)
  const { trial } = entitlement
  const shown = blocked ? [blocked.code] : [name, ...capacities.map(({ status }) => status)]
  const version = [...shown, ...(trial ? [trial.state, Math.floor(trial.remaining_seconds / 60)] : [])].join(' ')
  return (
    <section class="card" aria-labelledby="start" data-part="start" data-version={version} data-blocked={blocked?.code}>
      <h2 id="start" tabIndex={-1}>
        Start a relay
      </h2>
      {trial ? <TrialTime trial={trial} /> : null}
      {blocked ? (
        <>
          {trial && trial.state !== 'open' ? null : <p>{blocked.text}</p>}
          <PurchaseLinks entitlement={entitlement} hasFailedPayment={hasFailedPayment} />
        </>
      ) : (
        <form class="fields" method="post" action="/relays/start">
          <NameField name={name} isFirst={connectionIds.length === 0} />
          {regions.length > 0 ? (
            <RegionChoice regions={regions} capacities={capacities} selected={values?.region ?? ''} />
          ) : null}
          <button type="submit">
            <Icon name="play" />
            Start relay
          </button>
        </form>
      )}
    </section>
  )
}

/** Why the account cannot start a relay; undefined when it can. */
export function blockedBy({ reason_code: code, active_managed_conns, max_concurrent_conns }: Entitlement) {
  if (code !== 'ok' && code !== 'trial') return { code, text: blockedTexts[code] }
  if (active_managed_conns < max_concurrent_conns) return undefined
  return { code: 'relay_limit_reached', text: code === 'trial' ? trialBusyText : limitReachedText }
}

const PurchaseLinks = ({
  entitlement,
  hasFailedPayment,
}: Pick<StartRelayProps, 'entitlement' | 'hasFailedPayment'>) => {
  const { reason_code: reason, plan_status: status, max_concurrent_conns: limit } = entitlement
  if (reason === 'plan_required' || reason === 'trial')
    return (
      <>
        {hasFailedPayment ? (
          <p data-unpaid-plan>
            Did your plan end because a payment failed? Pay the open invoice from{' '}
            <a href="/account#plan">your account</a> to restore it.
          </p>
        ) : null}
        <p>
          <a class="button" href="/account#plan">
            Get the paid plan
          </a>
        </p>
      </>
    )
  return reason === 'ok' && status === 'active' && limit < relayLimit({ planTier: 'paid', addons: addonsMax }) ? (
    <p>
      <a class="link" href="/account#plan">
        Add relays to your plan
      </a>
    </p>
  ) : null
}

/** A start with the name of a live relay would return that relay. */
const unusedName = (connectionIds: readonly string[]): string =>
  ['default', 'second', 'third', 'fourth'].find((name) => !connectionIds.includes(name)) ??
  `relay-${connectionIds.length + 1}`

const NameField = ({ name, isFirst }: { readonly name: string; readonly isFirst: boolean }) => (
  <div class="field">
    <input type="hidden" name="idempotency_key" value={newIdempotencyKey()} />
    <label for="connection_id">Name</label>
    <input
      id="connection_id"
      name="connection_id"
      value={name}
      required
      maxLength={64}
      pattern="[A-Za-z0-9._\-]+"
      title="Letters, digits, dots, dashes and underscores"
      aria-describedby="connection_id_hint"
      autocomplete="off"
      autocapitalize="none"
      spellcheck={false}
    />
    <p class="muted" id="connection_id_hint">
      {isFirst ? 'The plugin for OBS names its first connection “default”.' : 'Each relay needs its own name.'}
    </p>
  </div>
)

/** The message for a refused start or stop. */
export const relayProblemOf = (result: ApiResult): Problem => problemOf(result, problemTexts)

/** The form was submitted before, with other values or for a relay that has stopped. */
export const formAlreadyUsed: Problem = {
  code: 'form_already_used',
  text: 'This form was already submitted, so nothing was started. Submit it again to start a new relay.',
}

const problemTexts: Readonly<Record<string, string>> = {
  relay_access_denied: 'You can’t start a relay right now. The reason is shown below.',
  usage_exhausted: blockedTexts.usage_exhausted,
  relay_limit_reached: 'All relays that you may run are in use. Stop one to start another.',
  email_not_verified: 'To use your free test time, open the link that we mail to your address. It is sent from below.',
  capacity_exhausted: 'This region takes no new relays right now. Choose another region, or try again in a minute.',
  invalid_request:
    'Check the name and the region. Names have 1 to 64 characters: letters, digits, dots, dashes and underscores.',
  idempotency_key_reused: formAlreadyUsed.text,
  idempotency_key_invalid: formAlreadyUsed.text,
  not_found: 'This relay was not found. It may have stopped already.',
}
