/**
 * A plugin asks to be let in, and a person decides. Whoever started the plugin's login may have sent its link to somebody
 * else, so the page says what lets that person notice, makes Deny as easy as Approve, and does nothing by being opened.
 */
import type { PageAnswer, PageRoute, Visit } from '../page-route.ts'
import { type Network, networkOf } from './networks.ts'
import { displayNames, type ProviderName } from './providers.tsx'
import { problemOf } from './refusal-text.ts'

const prefix = '/login?attempt='
const attemptId = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i

/** The page for a login attempt, or nothing when that is no attempt's id. */
export const approvalPath = (attempt: string): string | undefined =>
  attemptId.test(attempt) ? prefix + attempt : undefined

/** Whether a path is such a page. */
export const isAboutPlugin = (path: string): boolean => path.startsWith(prefix)

interface Attempt {
  readonly login_attempt_id: string
  readonly status: 'pending' | 'approved' | 'denied' | 'consumed' | 'expired'
  readonly user_code: string
  readonly client_name: string
  readonly ip: string
  readonly created_at: string
  readonly expires_at: string
}

interface Account {
  readonly email: string | null
  readonly linked_accounts: readonly { readonly provider: ProviderName; readonly linked: boolean }[]
}

/** For somebody who is signed in. */
export async function showApproval(visit: Visit, attempt: string): Promise<PageAnswer> {
  const found = await visit.ask<Attempt>('GET', `/api/v1/auth/plugin/login/attempts/${attempt}`)
  if (found.status === 404) return unknownAttempt
  if (found.status !== 200) return problem(found.status, problemOf(found).text, attempt)
  if (found.body.status === 'pending') return asking(visit, found.body)
  return outcomes[found.body.status](found.body)
}

const decision = (act: 'approve' | 'deny'): PageRoute => ({
  method: 'POST',
  path: `/login/${act}`,
  caller: 'anyone',
  handle: async ({ form, isSignedIn, ask }) => {
    const attempt = form.get('attempt') ?? ''
    const page = approvalPath(attempt)
    if (page === undefined) return unknownAttempt
    // Signed out meanwhile: the question is asked again after signing in.
    if (!isSignedIn) return { goTo: page }
    const answer = await ask('POST', `/api/v1/auth/plugin/login/attempts/${attempt}/${act}`)
    if (answer.status === 429 || answer.status >= 500) return problem(answer.status, problemOf(answer).text, attempt)
    // What became of it stands there, whether this decided it or came too late.
    return { goTo: page }
  },
})

export const approve = decision('approve')
export const deny = decision('deny')

async function asking(visit: Visit, attempt: Attempt): Promise<PageAnswer> {
  const { body, status } = await visit.ask<{ user?: Account }>('GET', '/api/v1/auth/session')
  if (!body.user) return problem(status, 'Your account could not be read just now.', attempt.login_attempt_id)
  const network = networkOf(attempt.ip, visit.visitor.ip)
  return {
    title: 'Let a program in?',
    page: <Question attempt={attempt} account={accountName(body.user)} network={network} />,
  }
}

/** Some accounts have no address: their provider vouches for none. */
function accountName({ email, linked_accounts }: Account): string {
  if (email) return email
  const names = linked_accounts.filter((one) => one.linked).map((one) => displayNames[one.provider])
  return `your ${names.join(' and ')} account`
}

interface QuestionParts {
  readonly attempt: Attempt
  readonly account: string
  readonly network: Network
}

const Question = ({ attempt, account, network }: QuestionParts) => (
  <section class="card narrow">
    <h1>Let this program in?</h1>
    <p>Your streaming software has to show this code:</p>
    <p class="matching-code">{attempt.user_code}</p>
    <p>
      <strong>
        Approve only if you yourself just pressed “sign in” in your streaming software, and it shows this very code.
      </strong>{' '}
      Nobody of ours will ever send you this link or ask you for the code. Whoever is let in can use your relays.
    </p>
    <dl class="facts">
      <dt>Calls itself</dt>
      <dd>
        <bdi>{attempt.client_name}</bdi>
      </dd>
      <dt>Asked</dt>
      <dd>
        <time datetime={attempt.created_at}>{ago(attempt.created_at)}</time>, {fromWhere[network](attempt.ip)}
      </dd>
      <dt>Will be let in to</dt>
      <dd>{account}</dd>
      <dt>Answer within</dt>
      <dd>
        <time datetime={attempt.expires_at} data-until="over: start it again in your streaming software">
          {timeLeft(attempt.expires_at)}
        </time>
      </dd>
    </dl>
    <div class="choice" data-deliberate>
      <Decision act="deny" attempt={attempt} />
      <Decision act="approve" attempt={attempt} />
    </div>
    <form method="post" action="/sign-out">
      <input type="hidden" name="next" value={prefix + attempt.login_attempt_id} />
      <button class="quiet" type="submit">
        Not you? Use another account
      </button>
    </form>
  </section>
)

const acts = { approve: 'Approve', deny: 'Deny' } as const

const Decision = ({ act, attempt }: { readonly act: keyof typeof acts; readonly attempt: Attempt }) => (
  <form method="post" action={`/login/${act}`}>
    <input type="hidden" name="attempt" value={attempt.login_attempt_id} />
    <button class="second wide" type="submit">
      {acts[act]}
    </button>
  </form>
)

const fromWhere: Readonly<Record<Network, (ip: string) => string>> = {
  same: (ip) => `from this network (${ip})`,
  other: (ip) =>
    `from another network: ${ip}. If you stream on mobile data or through a VPN that is normal. If not: deny.`,
  unknown: (ip) => `from ${ip}, a private address that tells nothing about who asked`,
}

function ago(timestamp: string): string {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(timestamp)) / 1000))
  if (seconds < 5) return 'just now'
  if (seconds < 60) return `${seconds} seconds ago`
  const minutes = Math.floor(seconds / 60)
  return minutes === 1 ? 'a minute ago' : `${minutes} minutes ago`
}

/** As minutes and seconds, the way that the page's script goes on counting. */
function timeLeft(timestamp: string): string {
  const seconds = Math.max(0, Math.ceil((Date.parse(timestamp) - Date.now()) / 1000))
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} minutes`
}

const outcomes: Readonly<Record<Exclude<Attempt['status'], 'pending'>, (attempt: Attempt) => PageAnswer>> = {
  approved: (attempt) => ({
    title: 'Approved',
    page: (
      <section class="card narrow">
        <h1>Approved</h1>
        <p class="notice" role="status">
          Go back to your streaming software: it signs in by itself in a moment.
        </p>
        <p>
          <bdi>{attempt.client_name}</bdi> with the code <strong class="code">{attempt.user_code}</strong> is being let
          in. Was that a mistake? Be quick:
        </p>
        <Decision act="deny" attempt={attempt} />
      </section>
    ),
  }),
  consumed: ({ client_name }) => ({
    title: 'Signed in',
    page: (
      <section class="card narrow">
        <h1>Your streaming software is signed in</h1>
        <p class="notice" role="status">
          Go back to it. You can close this page.
        </p>
        <p>
          <bdi>{client_name}</bdi> now stands under <a href="/account">where you are signed in</a>. You can sign it out
          there at any time.
        </p>
      </section>
    ),
  }),
  denied: () => ({
    title: 'Denied',
    page: (
      <section class="card narrow">
        <h1>Denied</h1>
        <p role="status">Nobody was let in.</p>
        <p>If it was you after all, start signing in again in your streaming software: it shows a new code.</p>
        <p>
          If somebody sent you the link or asked for the code: that was an attempt to get into your account. It has
          failed.
        </p>
        <BackToRelays />
      </section>
    ),
  }),
  expired: () => ({
    title: 'Too late',
    status: 410,
    page: (
      <section class="card narrow">
        <h1>This sign-in is over</h1>
        <p>It could be answered for 5 minutes. If your streaming software is signed in already, all is well.</p>
        <p>If not, start signing in again there: it opens a new page with a new code.</p>
        <BackToRelays />
      </section>
    ),
  }),
}

/** Also one that another account has decided: it is nobody else's to see. */
export const unknownAttempt: PageAnswer = {
  title: 'Unknown sign-in',
  status: 404,
  page: (
    <section class="card narrow">
      <h1>We do not know this sign-in</h1>
      <p>The link is not complete, or the sign-in was answered with another account.</p>
      <p>Start signing in again in your streaming software: it opens a new page with a new code.</p>
      <BackToRelays />
    </section>
  ),
}

const problem = (status: number, says: string, attempt: string): PageAnswer => ({
  title: 'Not done',
  status,
  page: (
    <section class="card narrow">
      <h1>That did not work yet</h1>
      <p class="problem" role="alert">
        {says}
      </p>
      <a class="button second wide" href={prefix + attempt}>
        See how it stands
      </a>
    </section>
  ),
})

function BackToRelays() {
  return (
    <p>
      <a class="link" href="/relays">
        To your relays
      </a>
    </p>
  )
}
