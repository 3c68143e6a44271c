/** Starting a relay: the form, and in plain words why it was refused and what helps. */
import { randomUUID } from 'node:crypto'
import { type ApiResponse, readApiError } from '../api.ts'
import { problemOf } from './refusal-text.ts'

export interface Region {
  readonly region: string
  readonly display_name: string
  readonly default: boolean
  readonly available: boolean
}

export interface Entitlement {
  readonly reason_code: 'ok' | 'plan_required' | 'operator_disabled' | 'usage_exhausted'
  readonly plan_status: 'none' | 'active' | 'past_due' | 'cancelled'
  readonly active_managed_conns: number
  readonly max_concurrent_conns: number
}

/** What a person has filled in. */
export interface Wanted {
  readonly connectionId: string
  readonly region: string
}

interface Shown {
  readonly entitlement: Entitlement
  readonly regions: readonly Region[]
  /** Connections that have a relay. */
  readonly taken: readonly string[]
  /** How much room there is, as a sentence. */
  readonly capacity?: string | undefined
  readonly wanted?: Wanted | undefined
}

/** Made with the form and sent with it, so that a form that is sent twice starts one relay. */
export const newKey = (): string => randomUUID()

/** Why no relay can be started at all, by the entitlement's reason. */
const barriers = {
  plan_required: 'Your plan has no managed relay. A relay of your own works with the plugin on every plan.',
  operator_disabled: 'Relays are switched off for this account. Ask support why.',
  usage_exhausted: 'The relay time of this cycle is used up. Your account page says when the next one begins.',
} as const

const allInUse = 'All relays of your plan are in use. Stop one to start another.'

export function StartRelay({ entitlement, regions, taken, capacity, wanted }: Shown) {
  const name = wanted?.connectionId ?? freeName(taken)
  const barrier = barrierOf(entitlement)
  return (
    <section class="card" aria-labelledby="start" data-part="start" data-version={barrier ?? name}>
      <h2 id="start" tabIndex={-1}>
        Start a relay
      </h2>
      {barrier ? (
        <>
          <p>{barrier}</p>
          <More entitlement={entitlement} />
        </>
      ) : (
        <>
          <StartForm name={name} regions={regions} region={wanted?.region ?? ''} isFirst={taken.length === 0} />
          {capacity ? (
            <p class="muted" data-part="capacity" data-version={capacity}>
              {capacity}
            </p>
          ) : null}
        </>
      )}
    </section>
  )
}

/** What there is to buy that helps. */
const More = ({ entitlement }: Pick<Shown, 'entitlement'>) => {
  const { reason_code: reason, plan_status: status, max_concurrent_conns: limit } = entitlement
  if (reason === 'plan_required')
    return (
      <>
        <p>
          Did your plan end over a failed payment? <a href="/account#plan">Your account</a> leads to where you pay it,
          and the plan is back.
        </p>
        <p>
          <a class="button" href="/account#plan">
            Get the paid plan
          </a>
        </p>
      </>
    )
  return reason === 'ok' && status === 'active' && limit < relaysMax ? (
    <p>
      <a class="link" href="/account#plan">
        Add a relay to your plan
      </a>
    </p>
  ) : null
}

/** With all add-ons. */
const relaysMax = 4

function barrierOf(entitlement: Entitlement): string | undefined {
  if (entitlement.reason_code !== 'ok') return barriers[entitlement.reason_code]
  if (entitlement.active_managed_conns < entitlement.max_concurrent_conns) return undefined
  return allInUse
}

/** A name that has a relay already would only bring that one again. */
const freeName = (taken: readonly string[]): string =>
  ['default', 'second', 'third', 'fourth'].find((name) => !taken.includes(name)) ?? `relay-${taken.length + 1}`

interface FormParts {
  readonly name: string
  readonly regions: readonly Region[]
  readonly region: string
  readonly isFirst: boolean
}

const StartForm = ({ name, regions, region, isFirst }: FormParts) => (
  <form class="fields" method="post" action="/relays/start">
    <input type="hidden" name="idempotency_key" value={newKey()} />
    <div class="field">
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
        {isFirst ? 'The plugin calls its first connection “default”.' : 'Each name has a relay of its own.'}
      </p>
    </div>
    {regions.length > 0 ? (
      <div class="field">
        <label for="region">Region</label>
        <select id="region" name="region">
          {regions.map((one) => (
            <option
              key={one.region}
              value={one.region}
              selected={region ? one.region === region : one.default}
              disabled={!one.available}
            >
              {one.available ? one.display_name : `${one.display_name} (full)`}
            </option>
          ))}
        </select>
      </div>
    ) : null}
    <button type="submit">Start</button>
  </form>
)

/** A refused start or stop in plain words, with what to do about it. */
export const problemIn = (answer: ApiResponse): string => problems[readApiError(answer).code] ?? problemOf(answer).text

/** For a form that was sent before, with other values or long ago. */
export const usedForm = 'This form was used before, so nothing was started. Here is a fresh one: start again.'

const problems: Readonly<Record<string, string>> = {
  relay_access_denied: 'You can’t start a relay at present: see below why.',
  usage_exhausted: barriers.usage_exhausted,
  relay_limit_reached: allInUse,
  capacity_exhausted: 'That region is full. Choose another one, or try again in a minute.',
  invalid_request:
    'Check the name and the region. A name has 1 to 64 letters, digits, dots, dashes or underscores, and nothing else.',
  idempotency_key_reused: usedForm,
  idempotency_key_invalid: usedForm,
  not_found: 'You have no such relay. It may be stopped already.',
}
