/**
 * A plugin asks to be let in, and a person decides. Whoever started the plugin's login may have sent its link to somebody
 * else, so the page says what lets that person notice, makes Deny as easy as Approve, and does nothing by being opened.
 */
import type { PageResult, PageRoute, Visit } from '../page.ts'
import { notDone, outcomes, unknownAttempt } from './approval-outcomes.tsx'
import { Question } from './approval-question.tsx'
import { type Account, type Attempt, approvalPath, isAttemptId } from './login-attempt.ts'
import { compareNetworks } from './network-match.ts'
import { problemOf } from './refusal-text.ts'

/** For somebody who is signed in. */
export async function showApproval(visit: Visit, attempt: string): Promise<PageResult> {
  const found = await visit.callApi<Attempt>('GET', `/api/v1/auth/plugin/login/attempts/${attempt}`)
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
    const { form, isSignedIn, callApi } = visit
    const attempt = form.get('attempt') ?? ''
    if (!isAttemptId(attempt)) return unknownAttempt
    const page = approvalPath(attempt)
    // Signed out meanwhile, or signed in as somebody else in another tab: the question is asked again.
    if (!isSignedIn) return { redirectTo: page }
    if (act === 'approve' && form.get('account') !== (await accountOf(visit))?.id) return { redirectTo: page }
    const answer = await callApi('POST', `/api/v1/auth/plugin/login/attempts/${attempt}/${act}`)
    if (answer.status === 429 || answer.status >= 500) return notDone(answer.status, problemOf(answer).text, attempt)
    // What became of it stands there, whether this decided it or came too late.
    return { redirectTo: page }
  },
})

export const approve = decision('approve')
export const deny = decision('deny')

async function asking(visit: Visit, attempt: Attempt): Promise<PageResult> {
  const account = await accountOf(visit)
  if (!account) return notDone(503, 'Your account could not be read just now.', attempt.login_attempt_id)
  const network = compareNetworks(attempt.ip, visit.visitor.ip)
  return {
    title: 'Let this program in?',
    page: <Question attempt={attempt} account={account} network={network} />,
  }
}

const accountOf = async ({ callApi }: Visit): Promise<Account | undefined> =>
  (await callApi<{ user?: Account }>('GET', '/api/v1/auth/session')).body.user
