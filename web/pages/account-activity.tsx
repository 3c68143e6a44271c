/** The activity of an account, so that its owner can detect foreign access and see what the relays did. */
import { expectSuccess } from '../../client/api-error.ts'
import { unchecked } from '../api-client.ts'
import type { ActivityEntry } from '../api-replies.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { Instant } from '../time-text.tsx'
import { DeletionBanner } from './account-deletion.tsx'
import { describeClient } from './account-sign-ins.tsx'
import { AccountTabs } from './account-tabs.tsx'
import { describeAction, describePlace, describeReason } from './activity-texts.ts'

const path = '/account/activity'

const groups = [
  ['', 'All'],
  ['sign_in', 'Sign-ins'],
  ['security', 'Security'],
  ['plan', 'Plan'],
  ['relays', 'Relays'],
] as const

export const show: PageHandler = (visit) => activityPage(visit)

async function activityPage(visit: Visit): Promise<PageResult> {
  const group = groups.find(([name]) => name === visit.query.get('group'))?.[0] ?? ''
  const cursor = visit.query.get('cursor') ?? ''
  const [summary, activity] = await Promise.all([
    visit.api.GET('/api/v1/auth/session', { params: { query: { view: 'dock' } } }),
    visit.api.GET('/api/v1/auth/activity', { params: { query: { group: unchecked(group), cursor } } }),
  ])
  // The address may contain a cursor that does not exist.
  if (activity.response.status === 400 && cursor !== '') return { redirectTo: `${path}${queryOf(group, '')}` }
  const { user } = expectSuccess(summary, 'A request of the activity page')
  const { entries, next_cursor: next } = expectSuccess(activity, 'A request of the activity page')
  return {
    name: 'account-activity',
    title: 'Activity',
    section: 'account',
    page: (
      <>
        <div class="page-head">
          <h1>Activity</h1>
        </div>
        <AccountTabs current="activity" />
        <DeletionBanner user={user} />
        <p class="muted">
          Don’t recognize something? Sign out everywhere else and change your password on the{' '}
          <a href="/account/security">security page</a>.
        </p>
        <Groups current={group} />
        <Entries entries={entries} />
        <OlderLink group={group} cursor={next} />
      </>
    ),
  }
}

/** `?group=plan&cursor=…`, or an empty text. */
function queryOf(group: string, cursor: string): string {
  const query = new URLSearchParams({ ...(group ? { group } : {}), ...(cursor ? { cursor } : {}) }).toString()
  return query === '' ? '' : `?${query}`
}

const Groups = ({ current }: { readonly current: string }) => (
  <nav class="tabs" aria-label="Kinds of activity">
    {groups.map(([name, label]) => (
      <a key={name} href={`${path}${queryOf(name, '')}`} aria-current={name === current ? 'true' : undefined}>
        {label}
      </a>
    ))}
  </nav>
)

const Entries = ({ entries }: { readonly entries: readonly ActivityEntry[] }) => {
  if (entries.length === 0)
    return (
      <p class="card" data-empty="yes">
        Nothing here yet.
      </p>
    )
  return (
    <div class="card">
      <ol class="entries">
        {entries.map((entry) => (
          <Entry key={entry.id} entry={entry} />
        ))}
      </ol>
    </div>
  )
}

const Entry = ({ entry }: { readonly entry: ActivityEntry }) => {
  const [reason, place] = [describeReason(entry), describePlace(entry)]
  return (
    <li data-action={entry.action}>
      <p>
        {describeAction(entry)}
        {place ? <span class="muted"> {place}</span> : null}
      </p>
      {reason ? <p data-reason={entry.detail.reason ?? ''}>{reason}</p> : null}
      <p class="muted">
        <EntryTime entry={entry} />
        {entry.actor === 'operator' ? ' · by support' : null}
        {describeAddress(entry)}
        {entry.client ? ` · ${describeClient(entry.client, entry.client_kind)}` : null}
      </p>
    </li>
  )
}

const EntryTime = ({ entry: { at, detail } }: { readonly entry: ActivityEntry }) =>
  typeof detail.last_at === 'string' ? (
    <span data-times={detail.times}>
      {detail.times} times, first <Instant at={at} />, last <Instant at={detail.last_at} />
    </span>
  ) : (
    <Instant at={at} />
  )

function describeAddress({ ip, detail }: ActivityEntry): string {
  if (detail.several_addresses) return ' · from several IP addresses'
  return ip ? ` · ${ip}` : ''
}

interface OlderLinkProps {
  readonly group: string
  readonly cursor: string | null
}

const OlderLink = ({ group, cursor }: OlderLinkProps) =>
  cursor === null ? null : (
    <p>
      <a class="button second" href={`${path}${queryOf(group, cursor)}`} rel="next">
        Older activity
      </a>
    </p>
  )
