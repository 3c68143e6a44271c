/** The page of connected apps: what each may do, when it was used, and how to disconnect it. */
import { expectSuccess } from '../../client/api-error.ts'
import type { ConnectedApp } from '../api-replies.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { TimeAgo } from '../time-text.tsx'
import { AccountTabs } from './account-tabs.tsx'
import { NoticeMessage, type Problem, ProblemMessage } from './messages.tsx'
import { problemOf } from './refusal-text.ts'
import { scopeTexts } from './scope-texts.ts'

const path = '/account/apps'

export const show: PageHandler = (visit) => appsPage(visit)

export const confirm: PageHandler = async (visit) => {
  const app = (await listApps(visit)).find(({ client_id }) => client_id === visit.params.client_id)
  if (!app) return { redirectTo: path }
  return {
    name: 'account-app-disconnect',
    title: `Disconnect ${app.name}?`,
    section: 'account',
    page: (
      <section class="card narrow">
        <h1>Disconnect {app.name}?</h1>
        <p>
          It is signed out on every computer at once, and the addresses that it got play no more. Sources in OBS that
          use them stay black until you connect it again and choose them again.
        </p>
        <form method="post" action={`${path}/${app.client_id}/disconnect`}>
          <button class="danger wide" type="submit">
            Disconnect
          </button>
        </form>
        <a class="button second wide" href={path}>
          Keep it
        </a>
      </section>
    ),
  }
}

export const disconnect: PageHandler = async (visit) => {
  const client_id = visit.params.client_id ?? ''
  const result = await visit.api.DELETE('/api/v1/auth/apps/{client_id}', { params: { path: { client_id } } })
  if (result.response.status < 300) return { redirectTo: `${path}?done=disconnected` }
  const problem = problemOf(result, { not_found: 'This app is no longer connected.' })
  return appsPage(visit, { status: result.response.status, problem })
}

const listApps = async ({ api }: Visit): Promise<readonly ConnectedApp[]> =>
  expectSuccess(await api.GET('/api/v1/auth/apps'), 'The list of connected apps').apps

interface Refusal {
  readonly status: number
  readonly problem: Problem
}

async function appsPage(visit: Visit, refused?: Refusal): Promise<PageResult> {
  const apps = await listApps(visit)
  const isDone = !refused && visit.query.get('done') === 'disconnected'
  return {
    name: 'account-apps',
    title: 'Connected apps',
    section: 'account',
    styles: ['account.css'],
    status: refused?.status ?? 200,
    page: (
      <>
        <div class="page-head">
          <h1>Connected apps</h1>
        </div>
        <AccountTabs current="apps" />
        {refused ? <ProblemMessage problem={refused.problem} /> : null}
        {isDone ? <NoticeMessage notice={{ code: 'disconnected', text: 'App disconnected.' }} /> : null}
        <section class="card" aria-labelledby="apps">
          <h2 id="apps">Apps that act for you</h2>
          {apps.length === 0 ? (
            <p>No apps are connected. Apps ask for your approval when you connect them.</p>
          ) : (
            <ul class="entries">
              {apps.map((app) => (
                <App key={app.client_id} app={app} />
              ))}
            </ul>
          )}
        </section>
      </>
    ),
  }
}

const App = ({ app }: { readonly app: ConnectedApp }) => (
  <li class="row apart" data-app={app.client_id}>
    <div>
      <p class="row">
        <strong>{app.name}</strong>
        {app.sign_ins > 1 ? <span class="badge">{app.sign_ins} sign-ins</span> : null}
        {app.sign_ins === 0 ? <span class="badge">Signed out, its addresses still play</span> : null}
      </p>
      {app.scopes.map((scope) => (
        <p key={scope} data-scope={scope}>
          {scopeTexts[scope]}
        </p>
      ))}
      <p class="muted">
        Connected <TimeAgo at={app.connected_at} />, last used <TimeAgo at={app.last_used_at} />
      </p>
    </div>
    <a class="button danger" href={`${path}/${app.client_id}/disconnect`}>
      Disconnect<span class="unseen"> {app.name}</span>
    </a>
  </li>
)
