/**
 * Connecting an app. The app opens the browser at the api, which leads here. Opening the page and signing in approve
 * nothing. After the decision the browser goes on to the api, which checks that the request began in this browser, and
 * from there to the app on the visitor's computer. It leaves by a page that navigates: `form-action` holds for each
 * redirect after a form too.
 */
import type { Account, AppRequest } from '../api-replies.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { accountName } from './approval-question.tsx'
import { connectPath } from './connect-path.ts'
import type { Problem } from './messages.tsx'
import { problemOf } from './refusal-text.ts'
import { requestFailedPage } from './request-failed.tsx'
import { scopeTexts } from './scope-texts.ts'

export const show: PageHandler = async (visit) => {
  const id = visit.params.id ?? ''
  const result = await visit.api.GET('/api/v1/auth/apps/requests/{id}', { params: { path: { id } } })
  const { data, response } = result
  if (response.status === 404) return unknownPage
  if (!data) return requestFailedPage('connect-failed', response.status, problemOf(result), connectPath(id))
  const account = await accountOf(visit)
  if (!account) return requestFailedPage('connect-failed', 503, accountProblem, connectPath(id))
  return {
    name: 'connect',
    title: `Connect ${data.name}?`,
    page: <Question id={id} request={data} account={account} />,
  }
}

const decide =
  (decision: 'approve' | 'deny'): PageHandler =>
  async (visit) => {
    const { params, form, api } = visit
    const id = params.id ?? ''
    // Asks again when the visitor has signed in to another account in another tab.
    if (form.get('account') !== (await accountOf(visit))?.id) return { redirectTo: connectPath(id) }
    const result = await api.POST(`/api/v1/auth/apps/requests/{id}/${decision}`, { params: { path: { id } } })
    const { data, response } = result
    if (response.status === 404) return unknownPage
    if (!data) return requestFailedPage('connect-failed', response.status, problemOf(result), connectPath(id))
    return { continueTo: data.continue_url, message: 'Returning to your streaming software…' }
  }

export const approve = decide('approve')
export const deny = decide('deny')

const accountOf = async ({ api }: Visit): Promise<Account | undefined> =>
  (await api.GET('/api/v1/auth/session', { params: { query: { view: 'dock' } } })).data?.user

const accountProblem: Problem = {
  code: 'account_unavailable',
  text: 'We couldn’t load your account. Try again in a moment.',
}

interface QuestionProps {
  readonly id: string
  readonly request: AppRequest
  readonly account: Account
}

const Question = ({ id, request, account }: QuestionProps) => (
  <section class="card narrow">
    <h1>Connect {request.name}?</h1>
    <p>
      <strong>Only approve if you just started this from your streaming software on this computer.</strong> We will
      never send you a link to this page.
    </p>
    <dl class="facts">
      <dt>App</dt>
      <dd data-app={request.client_id}>{request.name}</dd>
      <dt>It may</dt>
      <dd>
        <ul>
          {request.scopes.map((scope) => (
            <li key={scope} data-scope={scope}>
              {scopeTexts[scope]}
            </li>
          ))}
        </ul>
      </dd>
      <dt>Account</dt>
      <dd data-account={account.id}>{accountName(account)}</dd>
    </dl>
    <p class="muted">It can’t change your account, and you can disconnect it at any time under Connected apps.</p>
    <div class="choice" data-deliberate>
      <DecisionForm decision="deny" text="Deny" id={id} account={account} />
      <DecisionForm decision="approve" text="Approve" id={id} account={account} />
    </div>
    <form method="post" action="/sign-out">
      <input type="hidden" name="next" value={connectPath(id)} />
      <button class="quiet" type="submit">
        Use another account
      </button>
    </form>
  </section>
)

interface DecisionProps {
  readonly decision: 'approve' | 'deny'
  readonly text: string
  readonly id: string
  /** The account that the page shows. A decision is valid for this one only. */
  readonly account: Account
}

const DecisionForm = ({ decision, text, id, account }: DecisionProps) => (
  <form method="post" action={`${connectPath(id)}/${decision}`}>
    <input type="hidden" name="account" value={account.id} />
    <button class="second wide" type="submit">
      {text}
    </button>
  </form>
)

/** Also for a request that another account has decided, which is not visible to this one. */
const unknownPage: PageResult = {
  name: 'connect-unknown',
  title: 'Request not found',
  status: 404,
  page: (
    <section class="card narrow">
      <h1>Request not found</h1>
      <p>It has been answered already, or has expired: requests expire after 5 minutes.</p>
      <p>If your streaming software isn’t connected, start again from it.</p>
      <p>
        <a class="link" href="/account/apps">
          Go to your connected apps
        </a>
      </p>
    </section>
  ),
}
