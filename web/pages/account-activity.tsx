/** What happened to an account, in words: who reads it wants to know whether all of it was them. */
import { TimeAgo } from '../time-text.tsx'
import { formatAddons } from './account-billing.tsx'
import { type ClientKind, describeClient } from './account-sign-ins.tsx'
import { displayNames, formatProviderNames, parseProvider } from './providers.tsx'

export interface Entry {
  readonly id: string
  readonly at: string
  readonly actor: 'user' | 'operator' | 'system'
  readonly action: string
  readonly ip: string | null
  readonly client: string | null
  readonly client_kind: ClientKind | null
  readonly detail: Readonly<Record<string, string | number | boolean | null>>
}

const shownMax = 20

/** What strangers can try again and again; of those few are shown, so that they do not push out what was done. */
const attempts = new Set(['sign_in_failed', 'sign_in_unverified', 'signup_refused', 'password_reset_requested'])
const attemptsShownMax = 8

function shownOf(entries: readonly Entry[]): readonly Entry[] {
  let count = 0
  const isShown = ({ action }: Entry) => !attempts.has(action) || ++count <= attemptsShownMax
  return entries.filter(isShown).slice(0, shownMax)
}

const actions: Readonly<Record<string, string>> = {
  signed_up: 'Account opened',
  signed_in: 'Signed in',
  signed_out: 'Signed out',
  sign_in_failed: 'Sign-in refused: wrong password',
  sign_in_unverified: 'Sign-in refused: address not confirmed yet',
  signup_refused: 'Someone tried to open an account with your address',
  email_verified: 'Address confirmed',
  password_reset_requested: 'Link for a new password asked for',
  password_reset: 'Password changed',
  oauth_linked: 'Linked',
  oauth_unlinked: 'Unlinked',
  account_reclaimed: 'Taken over by the owner of its address',
  merge_requested: 'Linking asked for',
  merge_refused: 'Linking refused: wrong proof',
  merge_confirmed: 'Linked, after proving that the account is yours',
  chat_disconnected: 'Chat disconnected',
  plugin_login_approved: 'Streaming software let in',
  plugin_login_denied: 'Streaming software turned away',
  plan_granted: 'Plan given',
  subscription_cancelled: 'Subscription cancelled at the billing provider',
  plan_billed_twice: 'A second plan is billed beside the first',
  billing_event_replayed: 'A message about your payments was read again',
  billing_event_dismissed: 'A message about your payments was set aside',
  relay_access_disabled: 'Relays switched off',
  relay_access_enabled: 'Relays switched on',
  account_disabled: 'Account switched off',
  account_enabled: 'Account switched on',
  session_disconnected: 'Relay ended',
  session_transition_requested: 'Relay correction requested',
  session_transition_refused: 'Relay correction refused',
  session_transition_withdrawn: 'Relay correction withdrawn',
  session_transitioned: 'Relay corrected',
}

interface Shown {
  readonly entries: readonly Entry[]
  /** Without one there is no password to change. */
  readonly hasAddress: boolean
}

export const Activity = ({ entries, hasAddress }: Shown) => (
  <section class="card" aria-labelledby="activity">
    <h2 id="activity">Recent activity</h2>
    <p class="muted">
      Something that was not you?{' '}
      {hasAddress ? (
        <>
          <a href="/forgot-password">Change the password</a>: that signs out everywhere.
        </>
      ) : (
        'Sign it out above, and look after the accounts that are linked.'
      )}
    </p>
    <ol class="entries">
      {shownOf(entries).map((entry) => (
        <li key={entry.id}>
          <p>{inWords(entry)}</p>
          <p class="muted">
            <When entry={entry} />
            {entry.actor === 'operator' ? ' · by support' : null}
            {placeInWords(entry)}
            {entry.client ? ` · ${describeClient(entry.client, entry.client_kind)}` : null}
          </p>
        </li>
      ))}
    </ol>
  </section>
)

const When = ({ entry: { at, detail } }: { readonly entry: Entry }) =>
  typeof detail.last_at === 'string' ? (
    <>
      {detail.times} times, first <TimeAgo at={at} />, last <TimeAgo at={detail.last_at} />
    </>
  ) : (
    <TimeAgo at={at} />
  )

function placeInWords({ ip, detail }: Entry): string {
  if (detail.several_addresses) return ' · from several addresses'
  return ip ? ` · ${ip}` : ''
}

/** What the page does not know yet it shows as the trail has it. */
function inWords({ action, detail }: Entry): string {
  if (action === 'plan_changed') return `Plan changed: ${planInWords(detail)}`
  if (action === 'plan_granted' && detail.plan_tier === 'free') return 'Given plan taken back'
  if (action === 'addons_billed_without_plan') return `Plan ended, ${formatAddons(Number(detail.addons))} still billed`
  if (action === 'usage_notice') return `${detail.percent} % of the relay time of the cycle used`
  if (action === 'password_reset' && detail.unlinked)
    return `Password changed, unlinked: ${formatProviderNames(String(detail.unlinked))}`
  const said = actions[action] ?? action.replaceAll('_', ' ')
  const provider = parseProvider(String(detail.provider ?? detail.method))
  return provider ? `${said}: ${displayNames[provider]}` : said
}

const standings: Readonly<Record<string, string>> = { past_due: ', payment failed', cancelled: ', cancelled' }

function planInWords({ plan_tier: tier, plan_status: status, addons }: Entry['detail']): string {
  const extra = Number(addons) > 0 ? `, ${formatAddons(Number(addons))}` : ''
  return `${tier === 'paid' ? 'paid plan' : 'free plan'}${standings[String(status)] ?? ''}${extra}`
}
