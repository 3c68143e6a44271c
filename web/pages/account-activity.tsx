/** The recent audit entries of an account, so that its owner can detect foreign access. */
import type { AuditEntry } from '../api-replies.ts'
import { TimeAgo } from '../time-text.tsx'
import { formatAddons } from './account-billing.tsx'
import { describeClient } from './account-sign-ins.tsx'
import { displayNames, formatProviderNames, parseProvider } from './providers.tsx'

const entriesMax = 20

/** Strangers can cause these at will, so only a few are shown: they must not displace the other entries. */
const attemptActions = new Set(['sign_in_failed', 'sign_in_unverified', 'signup_refused', 'password_reset_requested'])
const attemptsMax = 8

function selectEntries(entries: readonly AuditEntry[]): readonly AuditEntry[] {
  let attempts = 0
  const isShown = ({ action }: AuditEntry) => !attemptActions.has(action) || ++attempts <= attemptsMax
  return entries.filter(isShown).slice(0, entriesMax)
}

const actionTexts: Readonly<Record<string, string>> = {
  signed_up: 'Account created',
  signed_in: 'Signed in',
  signed_out: 'Signed out',
  sign_in_failed: 'Sign-in failed: wrong password',
  sign_in_unverified: 'Sign-in failed: email not verified',
  signup_refused: 'Someone tried to create an account with your email address',
  email_verified: 'Email verified',
  password_reset_requested: 'Password reset requested',
  password_reset: 'Password changed',
  oauth_linked: 'Account linked',
  oauth_unlinked: 'Account unlinked',
  account_reclaimed: 'Account recovered by the owner of its email address',
  merge_requested: 'Account linking requested',
  merge_refused: 'Account linking failed: ownership not confirmed',
  merge_confirmed: 'Account linked after confirming ownership',
  chat_disconnected: 'Chat disconnected',
  plugin_login_approved: 'Streaming software approved',
  plugin_login_denied: 'Streaming software denied',
  plan_granted: 'Plan granted',
  subscription_cancelled: 'Subscription cancelled with the billing provider',
  plan_billed_twice: 'Billed for a second plan',
  billing_event_replayed: 'Payment notification processed again',
  billing_event_dismissed: 'Payment notification dismissed',
  relay_access_disabled: 'Relays disabled',
  relay_access_enabled: 'Relays enabled',
  account_disabled: 'Account disabled',
  account_enabled: 'Account enabled',
  session_disconnected: 'Relay disconnected',
  session_transition_requested: 'Relay state correction requested',
  session_transition_refused: 'Relay state correction refused',
  session_transition_withdrawn: 'Relay state correction withdrawn',
  session_transitioned: 'Relay state corrected',
}

interface ActivityProps {
  readonly entries: readonly AuditEntry[]
  /** Whether the account has an email address, and so a password to change. */
  readonly hasEmail: boolean
}

export const Activity = ({ entries, hasEmail }: ActivityProps) => (
  <section class="card" aria-labelledby="activity">
    <h2 id="activity">Recent activity</h2>
    <p class="muted">
      Don’t recognize something?{' '}
      {hasEmail ? (
        <>
          <a href="/forgot-password">Change your password</a> to sign out everywhere.
        </>
      ) : (
        'Sign it out above, and check the security of your linked accounts.'
      )}
    </p>
    <ol class="entries">
      {selectEntries(entries).map((entry) => (
        <li key={entry.id} data-action={entry.action}>
          <p>{describeAction(entry)}</p>
          <p class="muted">
            <EntryTime entry={entry} />
            {entry.actor === 'operator' ? ' · by support' : null}
            {describeAddress(entry)}
            {entry.client ? ` · ${describeClient(entry.client, entry.client_kind)}` : null}
          </p>
        </li>
      ))}
    </ol>
  </section>
)

const EntryTime = ({ entry: { at, detail } }: { readonly entry: AuditEntry }) =>
  typeof detail.last_at === 'string' ? (
    <span data-times={detail.times}>
      {detail.times} times, first <TimeAgo at={at} />, last <TimeAgo at={detail.last_at} />
    </span>
  ) : (
    <TimeAgo at={at} />
  )

function describeAddress({ ip, detail }: AuditEntry): string {
  if (detail.several_addresses) return ' · from several IP addresses'
  return ip ? ` · ${ip}` : ''
}

/** Actions without a text, from a newer API, are shown by their name. */
function describeAction({ action, detail }: AuditEntry): string {
  if (action === 'plan_changed') return `Plan changed: ${describePlan(detail)}`
  if (action === 'plan_granted' && detail.plan_tier === 'free') return 'Granted plan removed'
  if (action === 'addons_billed_without_plan')
    return `Plan ended, but ${formatAddons(Number(detail.addons))} still billed`
  if (action === 'usage_notice') return `${detail.percent}% of the relay time of the cycle used`
  if (action === 'password_reset' && detail.unlinked)
    return `Password changed, unlinked: ${formatProviderNames(String(detail.unlinked))}`
  const text = actionTexts[action] ?? action.replaceAll('_', ' ')
  const provider = parseProvider(String(detail.provider ?? detail.method))
  return provider ? `${text}: ${displayNames[provider]}` : text
}

const planStatusTexts: Readonly<Record<string, string>> = { past_due: ', payment failed', cancelled: ', cancelled' }

function describePlan({ plan_tier: tier, plan_status: status, addons }: AuditEntry['detail']): string {
  const addonsText = Number(addons) > 0 ? `, ${formatAddons(Number(addons))}` : ''
  return `${tier === 'paid' ? 'paid plan' : 'free plan'}${planStatusTexts[String(status)] ?? ''}${addonsText}`
}
