/**
 * Finds an account by its address, and whatever has an id by its id. Accounts are not listed: an operator looks at one
 * for a reason.
 */

import type { ApiClient } from '../../client/client.ts'
import { isUuid } from '../../domain/uuid.ts'
import { Icon } from '../icons.tsx'
import { NotFoundForOperatorError } from '../operator-session.ts'
import type { PageHandler } from '../page.ts'
import { type Problem, ProblemMessage } from '../pages/messages.tsx'
import { pathWith } from './filter-form.tsx'
import { listProblem } from './refused-page.tsx'

const path = '/operator/users'

export const find: PageHandler = async ({ query, operatorApi }) => {
  const search = query.get('email')?.trim() ?? ''
  const frame = { name: 'operator-users', title: 'Users', console: 'users' } as const
  if (search === '') return { ...frame, page: <UsersPage search="" /> }
  const page = search.includes('@') ? undefined : await findPageOf(search, operatorApi)
  if (page) return { redirectTo: page }
  const found = await operatorApi.GET('/api/v1/admin/users', { params: { query: { email: search } } })
  const [user] = found.data?.users ?? []
  if (user) return { redirectTo: `${path}/${user.id}` }
  const { status } = found.response
  return { ...frame, status, page: <UsersPage search={search} problem={listProblem(found)} /> }
}

/**
 * @returns the page of the account, session, billing event or instance with this id, or of the account that pays as
 * this customer.
 */
async function findPageOf(id: string, operatorApi: ApiClient): Promise<string | undefined> {
  if (!isUuid(id)) {
    const found = await operatorApi.GET('/api/v1/admin/instances', { params: { query: { instance_id: id } } })
    const [instance] = found.data?.instances ?? []
    if (instance) return pathWith('/operator/instances', { show: 'all', instance_id: instance.instance_id })
    const owners = await operatorApi.GET('/api/v1/admin/users', { params: { query: { billing_id: id } } })
    const [owner] = owners.data?.users ?? []
    return owner && `${path}/${owner.id}`
  }
  const params = { path: { id: id.toLowerCase() } }
  const readers = [
    [path, () => operatorApi.GET('/api/v1/admin/users/{id}', { params })],
    ['/operator/sessions', () => operatorApi.GET('/api/v1/admin/sessions/{id}', { params })],
    ['/operator/billing/events', () => operatorApi.GET('/api/v1/admin/billing/events/{id}', { params })],
  ] as const
  for (const [base, read] of readers) if (await exists(read)) return `${base}/${params.path.id}`
  return undefined
}

async function exists(read: () => Promise<unknown>): Promise<boolean> {
  try {
    await read()
    return true
  } catch (error) {
    if (error instanceof NotFoundForOperatorError) return false
    throw error
  }
}

interface UsersPageProps {
  readonly search: string
  readonly problem?: Problem | undefined
}

const UsersPage = ({ search, problem }: UsersPageProps) => (
  <>
    <div class="page-head">
      <h1>Users</h1>
      <p class="lead">
        Find an account by its email address, or an account, relay session, billing event, instance, customer or
        subscription by its id.
      </p>
    </div>
    <ProblemMessage problem={problem} />
    <form class="card filter" method="get" action={path}>
      <div class="field">
        <label for="email">Email address or id</label>
        <input
          id="email"
          name="email"
          value={search}
          required
          maxlength={254}
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
        />
      </div>
      <button type="submit">
        <Icon name="search" />
        Find
      </button>
    </form>
    {search !== '' && !problem ? (
      <section class="card empty" data-found="none">
        <Icon name="user-x" />
        <h2>Nothing has this address or id</h2>
        <p>
          Addresses and ids are compared as a whole, addresses without regard to case. An account that signed up with a
          provider may have no address; find it by its id.
        </p>
      </section>
    ) : null}
    <p class="row">
      <a class="link" href="/operator/billing/accounts?billed=without_plan">
        Accounts billed for unused add-ons
      </a>
      <a class="link" href="/operator/billing/accounts?billed=twice">
        Accounts billed twice
      </a>
    </p>
  </>
)
