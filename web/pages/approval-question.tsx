/** What a person must see before deciding a plugin's login, and the two ways to decide. */
import type { ComponentChildren } from 'preact'
import { formatAge, TimeLeft } from '../time-text.tsx'
import { type Account, type Attempt, approvalPath } from './login-attempt.ts'
import type { NetworkMatch } from './network-match.ts'
import { displayNames } from './providers.tsx'

interface QuestionParts {
  readonly attempt: Attempt
  readonly account: Account
  readonly network: NetworkMatch
}

export const Question = ({ attempt, account, network }: QuestionParts) => (
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
      <dt>Let in to</dt>
      <dd>{accountName(account)}</dd>
      <dt>Time left</dt>
      <dd>
        <TimeLeft until={attempt.expires_at} over="over: start it again in your streaming software" />
      </dd>
    </dl>
    <div class="choice" data-deliberate>
      <Decision act="deny" says="Deny" attempt={attempt} />
      <Decision act="approve" says="Approve" attempt={attempt} account={account} />
    </div>
    <form method="post" action="/sign-out">
      <input type="hidden" name="next" value={approvalPath(attempt.login_attempt_id)} />
      <button class="quiet" type="submit">
        Not you? Use another account
      </button>
    </form>
  </section>
)

interface DecisionParts {
  readonly act: 'approve' | 'deny'
  readonly says: string
  readonly attempt: Attempt
  /** The one that the page names: an approval is for no other. */
  readonly account?: Account
}

export const Decision = ({ act, says, attempt, account }: DecisionParts) => (
  <form method="post" action={`/login/${act}`}>
    <input type="hidden" name="attempt" value={attempt.login_attempt_id} />
    {account ? <input type="hidden" name="account" value={account.id} /> : null}
    <button class="second wide" type="submit">
      {says}
    </button>
  </form>
)

const fromWhere: Readonly<Record<NetworkMatch, (ip: string) => ComponentChildren>> = {
  same: (ip) => `from this network (${ip})`,
  other: (ip) => (
    <>
      <strong>from another network</strong> ({ip}). If you stream on mobile data or through a VPN, that is normal. If
      not, deny.
    </>
  ),
  unknown: (ip) => `from ${ip}, a private address that tells nothing about who asked`,
}

/** To the second, as long as that tells one's own login from somebody else's. */
function ago(timestamp: string): string {
  const [at, now] = [new Date(timestamp), new Date()]
  const seconds = Math.round((now.getTime() - at.getTime()) / 1000)
  return seconds >= 5 && seconds < 60 ? `${seconds} seconds ago` : formatAge(at, now)
}

/** Some accounts have no address: their provider vouches for none. */
function accountName({ email, linked_accounts }: Account): string {
  if (email) return email
  const names = linked_accounts.filter((one) => one.linked).map((one) => displayNames[one.provider])
  return `your ${names.join(' and ')} account`
}
