/** The pages that change the password and the address of an account. */
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { OwnerProofField, readOwnerProof } from './account-owner-proof.tsx'
import { EmailField, NewPasswordField, PasswordField } from './fields.tsx'
import { type Problem, ProblemMessage } from './messages.tsx'
import { problemOf } from './refusal-text.ts'

const passwordPath = '/account/security/password'
const emailPath = '/account/security/email'

export const showPassword: PageHandler = (visit) => passwordPage(visit)

export const changePassword: PageHandler = async (visit) => {
  const { form } = visit
  const body = {
    current_password: form.get('current_password') ?? '',
    new_password: form.get('new_password') ?? '',
  }
  const result = await visit.api.POST('/api/v1/auth/password/change', { body })
  const { status } = result.response
  if (status === 204) return { redirectTo: '/account/security?done=password_changed' }
  const problem = problemOf(result)
  // The API names no field, since there is only one password that can be wrong.
  const field = problem.code === 'invalid_credentials' ? { field: 'current_password' } : {}
  return passwordPage(visit, { status, problem: { ...problem, ...field } })
}

export const showEmail: PageHandler = (visit) => emailPage(visit)

export const changeEmail: PageHandler = async (visit) => {
  const [email, password] = [visit.form.get('email') ?? '', visit.form.get('password')]
  const body = password === null ? { email } : { email, password }
  const result = await visit.api.POST('/api/v1/auth/email/change', { body })
  const { status } = result.response
  if (status === 202) return { redirectTo: '/account/security?done=email_change_sent' }
  return emailPage(visit, { email, status, problem: problemOf(result) })
}

interface Refusal {
  readonly status: number
  readonly problem: Problem
  readonly email?: string
}

async function passwordPage(visit: Visit, refused?: Refusal): Promise<PageResult> {
  const { hasPassword } = await readOwnerProof(visit)
  return formPage({
    name: 'account-password',
    title: 'Change password',
    refused,
    page: hasPassword ? (
      <form class="fields" method="post" action={passwordPath}>
        <p>You stay signed in here, and are signed out everywhere else.</p>
        <PasswordField name="current_password" label="Current password" problem={refused?.problem} />
        <NewPasswordField name="new_password" problem={refused?.problem} />
        <button class="wide" type="submit">
          Change password
        </button>
      </form>
    ) : (
      <>
        <p>Your account has no password yet. We can email you a link to set one.</p>
        <a class="button wide" href="/forgot-password">
          Email me a link
        </a>
      </>
    ),
  })
}

async function emailPage(visit: Visit, refused?: Refusal): Promise<PageResult> {
  const proof = await readOwnerProof(visit)
  return formPage({
    name: 'account-email',
    title: 'Change email',
    refused,
    page: (
      <form class="fields" method="post" action={emailPath}>
        <p>We email a link to the new address. Your email address changes when you open it and confirm.</p>
        <EmailField label="New email address" value={refused?.email ?? ''} problem={refused?.problem} />
        <OwnerProofField proof={proof} problem={refused?.problem} />
        {proof.isPossible ? (
          <button class="wide" type="submit">
            Email me a link
          </button>
        ) : null}
      </form>
    ),
  })
}

const formPage = ({
  name,
  title,
  refused,
  page,
}: {
  readonly name: string
  readonly title: string
  readonly refused: Refusal | undefined
  readonly page: preact.VNode
}): PageResult => ({
  name,
  title,
  section: 'account',
  layout: 'narrow',
  status: refused?.status ?? 200,
  page: (
    <section class="card narrow">
      <h1>{title}</h1>
      <ProblemMessage problem={refused?.problem} />
      {page}
      <a class="link" href="/account/security">
        Back to security
      </a>
    </section>
  ),
})
