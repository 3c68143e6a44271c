/** The question whether to approve a plugin's sign-in, with what a person needs to detect phishing. */

import type { ComponentChildren } from 'preact'
import type { Account, LoginAttempt } from '../api-replies.ts'
import { formatAge, TimeAgo, TimeLeft } from '../time-text.tsx'
import { approvalPath } from './login-attempt.ts'
import type { NetworkMatch } from './network-match.ts'
import { displayNames } from './providers.tsx'

interface QuestionProps {
  readonly attempt: LoginAttempt
  readonly account: Account
  readonly network: NetworkMatch
}

export const Question = ({ attempt, account, network }: QuestionProps) => (
  <section class="card narrow">
    <h1>Approve this sign-in?</h1>
    <p>Check that your streaming software shows this code:</p>
    <p class="matching-code">{attempt.user_code}</p>
    <p>
      <strong>
        Only approve if you just started signing in from your streaming software, and it shows exactly this code.
      </strong>{' '}
      We will never send you this link or ask for the code. Software that you approve can use your relays.
    </p>
    <dl class="facts">
      <dt>Software</dt>
      <dd>
        <bdi>{attempt.client_name}</bdi>
      </dd>
      <dt>Requested</dt>
      <dd data-network={network}>
        <TimeAgo at={attempt.created_at} text={formatRequestAge(attempt.created_at)} />,{' '}
        {networkTexts[network](attempt.ip)}
      </dd>
      <dt>Account</dt>
      <dd data-account={account.id}>{accountName(account)}</dd>
      <dt>Expires in</dt>
      <dd>
        <TimeLeft until={attempt.expires_at} expiredText="expired, start again from your streaming software" />
      </dd>
    </dl>
    <div class="choice" data-deliberate>
      <DecisionForm decision="deny" text="Deny" attempt={attempt} />
      <DecisionForm decision="approve" text="Approve" attempt={attempt} account={account} />
    </div>
    <form method="post" action="/sign-out">
      <input type="hidden" name="next" value={approvalPath(attempt.login_attempt_id)} />
      <button class="quiet" type="submit">
        Use another account
      </button>
    </form>
  </section>
)

interface DecisionProps {
  readonly decision: 'approve' | 'deny'
  readonly text: string
  readonly attempt: LoginAttempt
  /** The account that the page shows. An approval is valid for this one only. */
  readonly account?: Account
}

export const DecisionForm = ({ decision, text, attempt, account }: DecisionProps) => (
  <form method="post" action={`/login/${decision}`}>
    <input type="hidden" name="attempt" value={attempt.login_attempt_id} />
    {account ? <input type="hidden" name="account" value={account.id} /> : null}
    <button class="second wide" type="submit">
      {text}
    </button>
  </form>
)

const networkTexts: Readonly<Record<NetworkMatch, (ip: string) => ComponentChildren>> = {
  same: (ip) => `from this network (${ip})`,
  other: (ip) => (
    <>
      <strong>from another network</strong> ({ip}). This is normal if you stream on mobile data or through a VPN.
      Otherwise, deny.
    </>
  ),
  unknown: (ip) => `from ${ip}, a private address that doesn’t identify the network`,
}

/** In seconds below a minute, so that visitors can recognize their own request. */
function formatRequestAge(timestamp: string): string {
  const [at, now] = [new Date(timestamp), new Date()]
  const seconds = Math.round((now.getTime() - at.getTime()) / 1000)
  return seconds >= 5 && seconds < 60 ? `${seconds} seconds ago` : formatAge(at, now)
}

/** Accounts whose provider did not verify an email address have none. */
export function accountName({ email, linked_accounts }: Account): string {
  if (email) return email
  const names = linked_accounts.filter(({ linked }) => linked).map(({ provider }) => displayNames[provider])
  return `your ${names.join(' and ')} account`
}
