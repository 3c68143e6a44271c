/** Setting a new password with the link from the email of `forgot-password.tsx`. */

import { expectSuccess } from '../../client/api-error.ts'
import type { ApiClient } from '../../client/client.ts'
import { readApiError } from '../api-client.ts'
import { signOutCookies } from '../cookies.ts'
import type { PageHandler, PageResult } from '../page.ts'
import { NewPasswordField } from './fields.tsx'
import { type Problem, ProblemMessage } from './messages.tsx'
import { displayNames, type ProviderName, parseProvider } from './providers.tsx'
import { problemOf } from './refusal-text.ts'

export const show: PageHandler = async ({ query, anonymousApi }) => {
  const token = query.get('token') ?? ''
  const preview = await previewReset(anonymousApi, token)
  return preview ? resetPage({ token, preview }) : invalidLinkPage
}

export const submit: PageHandler = async ({ form, anonymousApi }) => {
  const [token, password] = [form.get('token') ?? '', form.get('password') ?? '']
  // The reset uses up the token, so the preview must be read first.
  const preview = await previewReset(anonymousApi, token)
  if (!preview) return invalidLinkPage
  const result = await anonymousApi.POST('/api/v1/auth/password/reset', { body: { token, password } })
  const { status } = result.response
  if (status === 204) return { redirectTo: loginPathAfterReset(preview), cookies: signOutCookies }
  if (readApiError(result).code === 'token_invalid') return invalidLinkPage
  return resetPage({ token, preview, problem: problemOf(result), status })
}

/** The effects of a reset besides the new password. */
interface Preview {
  readonly linked: readonly { readonly provider: ProviderName; readonly stays: boolean }[]
  readonly replacesStreamToken: boolean
}

/** Undefined when the token is invalid. */
async function previewReset(anonymousApi: ApiClient, token: string): Promise<Preview | undefined> {
  if (token === '') return undefined
  const result = await anonymousApi.POST('/api/v1/auth/password/reset/preview', { body: { token } })
  if (readApiError(result).code === 'token_invalid') return undefined
  const preview = expectSuccess(result, 'The preview of a password reset')
  const linked = preview.linked_accounts.flatMap(({ provider: name, stays }) => {
    const provider = parseProvider(name)
    return provider ? [{ provider, stays }] : []
  })
  return { linked, replacesStreamToken: preview.replaces_stream_token }
}

/** The login page lists the accounts that were unlinked. */
function loginPathAfterReset({ linked }: Preview): string {
  const unlinked = linked.flatMap(({ provider, stays }) => (stays ? [] : [provider]))
  return `/login?done=reset${unlinked.length > 0 ? `&unlinked=${unlinked.join(',')}` : ''}`
}

interface ResetForm {
  readonly token: string
  readonly preview: Preview
  readonly problem?: Problem
  readonly status?: number
}

const resetPage = ({ token, preview, problem, status = 200 }: ResetForm): PageResult => ({
  name: 'reset-password',
  title: 'Set a new password',
  status,
  page: (
    <section class="card narrow">
      <h1>Set a new password</h1>
      <p>You’ll be signed out of all browsers, phones and streaming software, and have to sign in again.</p>
      <EffectOnRelays {...preview} />
      <EffectOnLinkedAccounts {...preview} />
      <ProblemMessage problem={problem} />
      <form class="fields" method="post" action="/reset-password">
        <input type="hidden" name="token" value={token} />
        <NewPasswordField problem={problem} />
        <button class="wide" type="submit">
          Change password
        </button>
      </form>
    </section>
  ),
})

const EffectOnRelays = ({ replacesStreamToken }: Preview) => (
  <p data-replaces-stream-token={replacesStreamToken ? 'yes' : 'no'}>
    {replacesStreamToken
      ? 'Running relays will stop and you’ll get new stream addresses, since this account’s email address wasn’t verified before.'
      : 'Running relays keep running.'}
  </p>
)

const EffectOnLinkedAccounts = ({ linked }: Preview) =>
  linked.length === 0 ? null : (
    <>
      <p>Linked accounts:</p>
      <ul>
        {linked.map(({ provider, stays }) => (
          <li key={provider} data-provider={provider} data-linked={stays ? 'yes' : 'no'}>
            {stays
              ? `${displayNames[provider]} stays linked: it uses your email address.`
              : `${displayNames[provider]} will be unlinked: it isn’t verified with your email address. You can link it again after you sign in.`}
          </li>
        ))}
      </ul>
    </>
  )

const invalidLinkPage: PageResult = {
  name: 'reset-password-link-invalid',
  title: 'This link is invalid or has expired',
  status: 400,
  page: (
    <section class="card narrow">
      <h1>This link is invalid or has expired</h1>
      <p role="alert" data-problem="token_invalid">
        Password reset links expire after 30 minutes and can be used once. If you copied the link, check that it is
        complete.
      </p>
      <a class="button second wide" href="/forgot-password">
        Request a new link
      </a>
    </section>
  ),
}
