/**
 * Approving a plugin's sign-in. An attacker can start the sign-in and send its link to a victim, so the page shows
 * where the request comes from, makes Deny as easy as Approve, and opening it decides nothing.
 */
import type { Account, LoginAttempt } from '../api-replies.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { approvalFailedPage, outcomePages, unknownAttempt } from './approval-outcomes.tsx'
import { Question } from './approval-question.tsx'
import { approvalPath, isAttemptId } from './login-attempt.ts'
import { compareNetworks } from './network-match.ts'
import { problemOf } from './refusal-text.ts'

/** For a signed-in visitor. */
export async function showApproval(visit: Visit, attempt: string): Promise<PageResult> {
  const path = { id: attempt }
  const result = await visit.api.GET('/api/v1/auth/plugin/login/attempts/{id}', { params: { path } })
  const { data, response } = result
  if (response.status === 404) return unknownAttempt
  if (!data) return approvalFailedPage(response.status, problemOf(result), attempt)
  return data.status === 'pending' ? questionPage(visit, data) : outcomePages[data.status](data)
}

const decide =
  (decision: 'approve' | 'deny'): PageHandler =>
  async (visit) => {
    const { form, isSignedIn, api } = visit
    const attempt = form.get('attempt') ?? ''
    if (!isAttemptId(attempt)) return unknownAttempt
    const redirectTo = approvalPath(attempt)
    // Asks again when the visitor was signed out, or signed in to another account in another tab.
    if (!isSignedIn) return { redirectTo }
    if (decision === 'approve' && form.get('account') !== (await accountOf(visit))?.id) return { redirectTo }
    const path = { id: attempt }
    const result = await api.POST(`/api/v1/auth/plugin/login/attempts/{id}/${decision}`, { params: { path } })
    const { status } = result.response
    if (status === 429 || status >= 500) return approvalFailedPage(status, problemOf(result), attempt)
    // That page shows the outcome, whether this request decided it or came too late.
    return { redirectTo }
  }

export const approve = decide('approve')
export const deny = decide('deny')

async function questionPage(visit: Visit, attempt: LoginAttempt): Promise<PageResult> {
  const account = await accountOf(visit)
  if (!account) {
    const problem = { code: 'account_unavailable', text: 'We couldn’t load your account. Try again in a moment.' }
    return approvalFailedPage(503, problem, attempt.login_attempt_id)
  }
  const network = compareNetworks(attempt.ip, visit.visitor.ip)
  return {
    name: 'approval',
    title: 'Approve this sign-in?',
    page: <Question attempt={attempt} account={account} network={network} />,
  }
}

const accountOf = async ({ api }: Visit): Promise<Account | undefined> =>
  (await api.GET('/api/v1/auth/session')).data?.user
