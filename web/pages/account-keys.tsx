/** The page of play keys: which there are, who uses them, and how to make and delete them. */
import { renderToString } from 'preact-render-to-string'
import { expectSuccess } from '../../client/api-error.ts'
import { ownPlayKeysMax, playKeyNameLengthMax } from '../../domain/relay/play-keys.ts'
import type { Connection, PlayKey, PlayKeys, Session } from '../api-replies.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { listPlaybacks, PlayKeyList } from './account-keys-list.tsx'
import { AccountTabs } from './account-tabs.tsx'
import { QrCode } from './connection-kit-qr.tsx'
import { NoticeMessage, type Problem, ProblemMessage } from './messages.tsx'
import { problemPage } from './problem.tsx'
import { problemOf } from './refusal-text.ts'

const path = '/account/keys'

export const show: PageHandler = (visit) => keysPage(visit)

export const create: PageHandler = async (visit) => {
  const name = visit.form.get('name') ?? ''
  const connectionId = visit.form.get('connection_id') || null
  const result = await visit.api.POST('/api/v1/relay/play-keys', { body: { name, connection_id: connectionId } })
  if (result.response.status < 300) return { redirectTo: `${path}?done=created` }
  const problem = problemOf(result, {
    invalid_request: `Give the key a name of up to ${playKeyNameLengthMax} characters.`,
    not_found: 'This connection no longer exists.',
  })
  const field = fieldOf.get(problem.code)
  return keysPage(visit, {
    status: result.response.status,
    problem: field === undefined ? problem : { ...problem, field },
    values: { name, connectionId },
  })
}

/** The field that a refusal is about. */
const fieldOf: ReadonlyMap<string, string> = new Map([
  ['invalid_request', 'name'],
  ['not_found', 'connection_id'],
])

export const confirm: PageHandler = async (visit) => {
  const key = (await readKeys(visit)).play_keys.find(({ id }) => id === visit.params.id)
  if (!key) return { redirectTo: path }
  return {
    name: 'account-key-delete',
    title: `Delete the key ${key.name}?`,
    section: 'account',
    page: (
      <section class="card narrow">
        <h1>
          {key.kind === 'connection' ? 'Replace' : 'Delete'} “{key.name}”?
        </h1>
        <p>Players that use it are disconnected within seconds, and can’t come back with it.</p>
        <p>{consequences[key.kind]}</p>
        <form method="post" action={`${path}/${key.id}/delete`}>
          <button class="danger wide" type="submit">
            {key.kind === 'connection' ? 'Replace the key' : 'Delete the key'}
          </button>
        </form>
        <a class="button second wide" href={path}>
          Keep it
        </a>
      </section>
    ),
  }
}

const consequences: Readonly<Record<PlayKey['kind'], string>> = {
  own: 'Your own stream and other keys are not affected.',
  connection: 'The connection gets a new key at once. Copy its playback address from the relays page again.',
  app: 'The app gets a new key when you choose the stream in it again. To end its access, disconnect the app.',
}

export const remove: PageHandler = async (visit) => {
  const id = visit.params.id ?? ''
  const result = await visit.api.DELETE('/api/v1/relay/play-keys/{id}', { params: { path: { id } } })
  if (result.response.status < 300) return { redirectTo: `${path}?done=deleted` }
  const problem = problemOf(result, { not_found: 'This key is already deleted.' })
  return keysPage(visit, { status: result.response.status, problem })
}

export const setAccess: PageHandler = async (visit) => {
  const play_with_keys_only = visit.form.get('play_with_keys_only') === 'on'
  const result = await visit.api.POST('/api/v1/relay/play-access', { body: { play_with_keys_only } })
  if (result.response.status < 300) return { redirectTo: `${path}?done=access_saved` }
  return keysPage(visit, { status: result.response.status, problem: problemOf(result) })
}

/** The playback address of one relay with the key. */
export const showQr: PageHandler = async (visit) => {
  const [{ play_keys: keys }, sessions] = await Promise.all([readKeys(visit), readSessions(visit)])
  const { id, session_id: sessionId } = visit.params
  const key = keys.find((each) => each.id === id)
  const playback = key && listPlaybacks(key, sessions).find((each) => each.sessionId === sessionId)
  if (!playback) return problemPage('not_found')
  const content = renderToString(<QrCode content={playback.address} />)
  return { download: { fileName: 'qr-code.svg', contentType: 'image/svg+xml', content, isShown: true } }
}

const readKeys = async ({ api }: Visit): Promise<PlayKeys> =>
  expectSuccess(await api.GET('/api/v1/relay/play-keys'), 'The list of play keys')

const readSessions = async ({ api }: Visit): Promise<readonly Session[]> =>
  expectSuccess(await api.GET('/api/v1/relay/active'), 'The list of live relays').sessions

/** By the `done` parameter. It may be forged, so other values show nothing. */
const notices: ReadonlyMap<string, string> = new Map([
  ['created', 'Key created. Players can use it now.'],
  ['deleted', 'Key deleted. Its players are disconnected.'],
  ['access_saved', 'Saved.'],
])

interface Refusal {
  readonly status: number
  readonly problem: Problem
  /** What was entered into the form. */
  readonly values?: NewKeyValues
}

interface NewKeyValues {
  readonly name: string
  readonly connectionId: string | null
}

async function keysPage(visit: Visit, refused?: Refusal): Promise<PageResult> {
  const [keys, sessions, connections] = await Promise.all([
    readKeys(visit),
    readSessions(visit),
    visit.api.GET('/api/v1/relay/connections'),
  ])
  const done = refused ? '' : (visit.query.get('done') ?? '')
  const notice = notices.get(done)
  const list = expectSuccess(connections, 'The list of connections').connections
  return {
    name: 'account-keys',
    title: 'Keys',
    section: 'account',
    status: refused?.status ?? 200,
    styles: ['relays.css', 'keys.css'],
    scripts: ['connection-kit.js'],
    page: (
      <>
        <div class="page-head">
          <h1>Keys</h1>
          <p class="lead">
            A play key lets OBS, a scene switcher or a friend play your streams. It can’t publish, and you can delete
            it.
          </p>
        </div>
        <AccountTabs current="keys" />
        <ProblemMessage problem={refused?.problem} />
        {notice ? <NoticeMessage notice={{ code: done, text: notice }} /> : null}
        <PlayKeyList keys={keys.play_keys} sessions={sessions} />
        <div class="grid-2">
          <NewKey keys={keys.play_keys} connections={list} values={refused?.values} problem={refused?.problem} />
          <Access isOn={keys.play_with_keys_only} />
        </div>
        {/* Announces to screen readers that something was copied. */}
        <p class="unseen" role="status" data-announcements />
      </>
    ),
  }
}

interface NewKeyProps {
  readonly keys: readonly PlayKey[]
  readonly connections: readonly Connection[]
  readonly values: NewKeyValues | undefined
  readonly problem: Problem | undefined
}

/** Marks the field that was refused. */
const refusedBy = (problem: Problem | undefined, field: string) =>
  problem?.field === field ? { 'aria-invalid': true, autofocus: true } : {}

const NewKey = ({ keys, connections, values, problem }: NewKeyProps) => (
  <section class="card" aria-labelledby="new-key">
    <h2 id="new-key">New key</h2>
    {keys.filter(({ kind }) => kind === 'own').length >= ownPlayKeysMax ? (
      <p>You have {ownPlayKeysMax} keys, which is the most. Delete one that you don’t use.</p>
    ) : (
      <form class="fields" method="post" action={path}>
        <div class="field">
          <label for="name">Name</label>
          <p class="muted" id="name-help">
            For you, so that you know later which key to delete: “Studio PC”, “Co-host”.
          </p>
          <input
            id="name"
            name="name"
            required
            maxlength={playKeyNameLengthMax}
            value={values?.name ?? ''}
            autocomplete="off"
            aria-describedby={problem?.field === 'name' ? 'problem name-help' : 'name-help'}
            {...refusedBy(problem, 'name')}
          />
        </div>
        <div class="field">
          <label for="connection">Plays</label>
          <select
            id="connection"
            name="connection_id"
            aria-describedby={problem?.field === 'connection_id' ? 'problem' : undefined}
            {...refusedBy(problem, 'connection_id')}
          >
            <option value="">All connections</option>
            {connections.map(({ name }) => (
              <option key={name} value={name} selected={name === values?.connectionId}>
                {name}
              </option>
            ))}
          </select>
        </div>
        <div>
          <button type="submit">Create key</button>
        </div>
      </form>
    )}
  </section>
)

const Access = ({ isOn }: { readonly isOn: boolean }) => (
  <section class="card" aria-labelledby="access">
    <h2 id="access">Who may play</h2>
    <form class="fields" method="post" action={`${path}/access`}>
      <label class="check">
        <input type="checkbox" name="play_with_keys_only" value="on" checked={isOn} />
        Players need a play key
      </label>
      <p class="muted">
        Otherwise your stream token, which publishes, plays too. Turn this on when your stream token may be in a scene
        collection that others have. Players that use the token are disconnected then.
      </p>
      <div>
        <button class="second" type="submit">
          Save
        </button>
      </div>
    </form>
  </section>
)
