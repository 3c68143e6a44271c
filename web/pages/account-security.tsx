/** The security page of an account: its address and password, linked accounts, and where it is signed in. */
import { type ApiResult, expectSuccess } from '../../client/api-error.ts'
import { unchecked } from '../api-client.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { DeleteAccount, DeletionBanner } from './account-deletion.tsx'
import { DownloadData } from './account-export.tsx'
import { Profile } from './account-profile.tsx'
import { AuthSessions, LinkedAccounts } from './account-sign-ins.tsx'
import { AccountTabs } from './account-tabs.tsx'
import { NoticeMessage, type Problem, ProblemMessage } from './messages.tsx'
import { configuredProviders, type ProviderName } from './providers.tsx'
import { problemOf } from './refusal-text.ts'

const path = '/account/security'

export const show: PageHandler = (visit) => securityPage(visit)

export const sendVerification: PageHandler = async (visit) =>
  finish(visit, await visit.api.POST('/api/v1/auth/email/resend'), 'verification_sent')

export const unlink: PageHandler = async (visit) => {
  const path = { provider: unchecked<ProviderName>(visit.params.provider ?? '') }
  return finish(visit, await visit.api.DELETE('/api/v1/auth/oauth/{provider}', { params: { path } }), 'unlinked')
}

export const signOut: PageHandler = async (visit) => {
  const path = { id: visit.params.id ?? '' }
  return finish(visit, await visit.api.DELETE('/api/v1/auth/sessions/{id}', { params: { path } }), 'signed_out')
}

export const signOutElsewhere: PageHandler = async (visit) =>
  finish(visit, await visit.api.POST('/api/v1/auth/sessions/revoke-others'), 'signed_out_elsewhere')

/** By the `done` parameter. It may be forged, so other values show nothing. */
const notices: ReadonlyMap<string, string> = new Map([
  ['linked', 'Account linked.'],
  ['unlinked', 'Account unlinked.'],
  ['signed_out', 'Signed out.'],
  ['signed_out_elsewhere', 'Signed out everywhere else.'],
  ['verification_sent', 'Verification link sent. It expires in 24 hours.'],
  ['password_changed', 'Password changed. You’re signed out everywhere else.'],
  ['email_change_sent', 'Check the inbox of your new email address. The link expires in an hour.'],
  ['deletion_scheduled', 'The deletion of your account is scheduled. You’re signed out everywhere else.'],
  ['restored', 'Your account stays. Cancelled subscriptions stay cancelled: choose a plan to start relays again.'],
])

const problems: Readonly<Record<string, string>> = {
  last_sign_in_method: 'This is your only way to sign in. Link another account or set a password before you unlink it.',
  invalid_request: 'This is not on your account.',
  not_found: 'This is no longer on your account.',
}

/** Redirects to the page with a notice, or renders it with the refusal. */
const finish = (visit: Visit, result: ApiResult, notice: string): Promise<PageResult> | PageResult =>
  result.response.status < 300
    ? { redirectTo: `${path}?done=${notice}` }
    : securityPage(visit, { status: result.response.status, problem: problemOf(result, problems) })

interface Refusal {
  readonly status: number
  readonly problem: Problem
}

async function securityPage(visit: Visit, refused?: Refusal): Promise<PageResult> {
  const [summary, sessions, providers] = await Promise.all([
    visit.api.GET('/api/v1/auth/session', { params: { query: { view: 'dock' } } }),
    visit.api.GET('/api/v1/auth/sessions'),
    configuredProviders(visit),
  ])
  const { user } = expectSuccess(summary, 'A request of the security page')
  // A list that failed to load must not look empty, as if there were no other sign-in.
  const { sessions: authSessions } = expectSuccess(sessions, 'A request of the security page')
  const done = visit.query.get('done') ?? ''
  const notice = notices.get(done)
  return {
    name: 'account-security',
    title: 'Security',
    section: 'account',
    styles: ['account.css'],
    status: refused?.status ?? 200,
    page: (
      <>
        <div class="page-head">
          <h1>Security</h1>
        </div>
        <AccountTabs current="security" />
        {refused ? <ProblemMessage problem={refused.problem} /> : null}
        {!refused && notice ? <NoticeMessage notice={{ code: done, text: notice }} /> : null}
        <DeletionBanner user={user} />
        <div class="grid-2 columns">
          <div class="stack">
            <Profile user={user} />
            <LinkedAccounts accounts={user.linked_accounts} configured={providers} />
          </div>
          <div class="stack">
            <AuthSessions sessions={authSessions} />
            <DownloadData />
            <DeleteAccount user={user} />
          </div>
        </div>
      </>
    ),
  }
}
