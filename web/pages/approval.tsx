/**
 * Approving a plugin's sign-in. An attacker can start the sign-in and send its link to a victim, so the page shows where the
 * request comes from, makes Deny as easy as Approve, and opening it decides nothing.
 */
import type { Account, AccountSummary, LoginAttempt } from '../api-replies.ts'
import type { PageResult, PageRoute, Visit } from '../page.ts'
import { approvalFailedPage, outcomePages, unknownAttempt } from './approval-outcomes.tsx'
import { Question } from './approval-question.tsx'
import { approvalPath, isAttemptId } from './login-attempt.ts'
import { compareNetworks } from './network-match.ts'
import { problemOf } from './refusal-text.ts'

/** For a signed-in visitor. */
export async function showApproval(visit: Visit, attempt: string): Promise<PageResult> {
  const response = await visit.callApi<LoginAttempt>('GET', `/api/v1/auth/plugin/login/attempts/${attempt}`)
  const { status, body } = response
  if (status === 404) return unknownAttempt
  if (status !== 200) return approvalFailedPage(status, problemOf(response), attempt)
  return body.status === 'pending' ? questionPage(visit, body) : outcomePages[body.status](body)
}

const decisionRoute = (decision: 'approve' | 'deny'): PageRoute => ({
  method: 'POST',
  path: `/login/${decision}`,
  caller: 'anyone',
  handle: async (visit) => {
    const { form, isSignedIn, callApi } = visit
    const attempt = form.get('attempt') ?? ''
    if (!isAttemptId(attempt)) return unknownAttempt
    const redirectTo = approvalPath(attempt)
    // Asks again when the visitor was signed out, or signed in to another account in another tab.
    if (!isSignedIn) return { redirectTo }
    if (decision === 'approve' && form.get('account') !== (await accountOf(visit))?.id) return { redirectTo }
    const response = await callApi('POST', `/api/v1/auth/plugin/login/attempts/${attempt}/${decision}`)
    if (response.status === 429 || response.status >= 500)
      return approvalFailedPage(response.status, problemOf(response), attempt)
    // That page shows the outcome, whether this request decided it or came too late.
    return { redirectTo }
  },
})

export const approve = decisionRoute('approve')
export const deny = decisionRoute('deny')

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

const accountOf = async ({ callApi }: Visit): Promise<Account | undefined> =>
  (await callApi<Partial<AccountSummary>>('GET', '/api/v1/auth/session')).body.user
