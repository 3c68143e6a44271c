/** Finds an account by its address or its id. Accounts are not listed: an operator looks at one for a reason. */
import { Icon } from '../icons.tsx'
import type { PageRoute } from '../page.ts'
import { type Problem, ProblemMessage } from '../pages/messages.tsx'
import { listProblem } from './refused-page.tsx'

const path = '/operator/users'
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export const find: PageRoute = {
  method: 'GET',
  path,
  caller: 'operator',
  handle: async ({ query, operatorApi }) => {
    const search = query.get('email')?.trim() ?? ''
    const frame = { name: 'operator-users', title: 'Users', console: 'users' } as const
    if (search === '') return { ...frame, page: <UsersPage search="" /> }
    if (uuid.test(search)) return { redirectTo: `${path}/${search.toLowerCase()}` }
    const found = await operatorApi.GET('/api/v1/admin/users', { params: { query: { email: search } } })
    const [user] = found.data?.users ?? []
    if (user) return { redirectTo: `${path}/${user.id}` }
    const { status } = found.response
    return { ...frame, status, page: <UsersPage search={search} problem={listProblem(found)} /> }
  },
}

interface UsersPageProps {
  readonly search: string
  readonly problem?: Problem | undefined
}

const UsersPage = ({ search, problem }: UsersPageProps) => (
  <>
    <div class="page-head">
      <h1>Users</h1>
      <p class="lead">Find an account by its email address or its id.</p>
    </div>
    <ProblemMessage problem={problem} />
    <form class="card filter" method="get" action={path}>
      <div class="field">
        <label for="email">Email address or account id</label>
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
        Find account
      </button>
    </form>
    {search !== '' && !problem ? (
      <section class="card empty" data-found="none">
        <Icon name="user-x" />
        <h2>No account has this address</h2>
        <p>
          Addresses are compared as a whole, without regard to case. An account that signed up with a provider may have
          no address; find it by its id.
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
