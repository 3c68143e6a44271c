/**
 * A plugin asks to be let in, and a person decides. Whoever started the plugin's login may have sent its link to somebody
 * else, so the page says what lets that person notice, makes Deny as easy as Approve, and does nothing by being opened.
 */
import type { PageAnswer, PageRoute, Visit } from '../page-route.ts'
import { notDone, outcomes, unknownAttempt } from './approval-outcomes.tsx'
import { Question } from './approval-question.tsx'
import { type Account, type Attempt, approvalPath, isAttemptId } from './login-attempt.ts'
import { networkOf } from './networks.ts'
import { problemOf } from './refusal-text.ts'

/** For somebody who is signed in. */
export async function showApproval(visit: Visit, attempt: string): Promise<PageAnswer> {
  const found = await visit.ask<Attempt>('GET', `/api/v1/auth/plugin/login/attempts/${attempt}`)
  if (found.status === 404) return unknownAttempt
  if (found.status !== 200) return notDone(found.status, problemOf(found).text, attempt)
  if (found.body.status === 'pending') return asking(visit, found.body)
  return outcomes[found.body.status](found.body)
}

const decision = (act: 'approve' | 'deny'): PageRoute => ({
  method: 'POST',
  path: `/login/${act}`,
  caller: 'anyone',
  handle: async (visit) => {
    const { form, isSignedIn, ask } = visit
    const attempt = form.get('attempt') ?? ''
    if (!isAttemptId(attempt)) return unknownAttempt
    const page = approvalPath(attempt)
    // Signed out meanwhile, or signed in as somebody else in another tab: the question is asked again.
    if (!isSignedIn) return { goTo: page }
    if (act === 'approve' && form.get('account') !== (await accountOf(visit))?.id) return { goTo: page }
    const answer = await ask('POST', `/api/v1/auth/plugin/login/attempts/${attempt}/${act}`)
    if (answer.status === 429 || answer.status >= 500) return notDone(answer.status, problemOf(answer).text, attempt)
    // What became of it stands there, whether this decided it or came too late.
    return { goTo: page }
  },
})

export const approve = decision('approve')
export const deny = decision('deny')

async function asking(visit: Visit, attempt: Attempt): Promise<PageAnswer> {
  const account = await accountOf(visit)
  if (!account) return notDone(503, 'Your account could not be read just now.', attempt.login_attempt_id)
  const network = networkOf(attempt.ip, visit.visitor.ip)
  return {
    title: 'Let this program in?',
    page: <Question attempt={attempt} account={account} network={network} />,
  }
}

const accountOf = async ({ ask }: Visit): Promise<Account | undefined> =>
  (await ask<{ user?: Account }>('GET', '/api/v1/auth/session')).body.user
