/** The page of a connection: what its players see while no stream arrives. */
import { type ApiResult, expectSuccess } from '../../client/api-error.ts'
import type { OnLoss } from '../../domain/relay/on-loss.ts'
import { slateBytesMax } from '../../domain/relay/slates.ts'
import { BodyTooLargeError } from '../../platform/koa/request-body.ts'
import { unchecked } from '../api-client.ts'
import type { Connection } from '../api-replies.ts'
import type { PageHandler, PageResult, Visit } from '../page.ts'
import { isPlainSegment } from '../plain-path.ts'
import { OnLossForm } from './connection-on-loss.tsx'
import { Slate } from './connection-slate.tsx'
import { describeOnLoss } from './loss-texts.ts'
import { NoticeMessage, type Problem, ProblemMessage } from './messages.tsx'
import { problemPage } from './problem.tsx'
import { problemOf } from './refusal-text.ts'

/** Of a picture of the largest size with the other field and what separates them. */
const formBytesMax = slateBytesMax + 16 * 1024

export const show: PageHandler = async (visit) => {
  const connection = await findConnection(visit)
  return connection ? connectionPage(visit, connection) : problemPage('not_found')
}

/** Stores the picture first: where it is refused, nothing is changed. */
export const save: PageHandler = async (visit) => {
  const connection = await findConnection(visit)
  if (!connection) return problemPage('not_found')
  const form = await readForm(visit)
  if (!form) return connectionPage(visit, connection, { status: 413, problem: tooLarge })
  const { mode, picture } = form
  const params = { path: { name: connection.name } }
  if (picture) {
    const stored = await visit.api.PUT('/api/v1/relay/connections/{name}/slate', {
      params,
      // The type is checked by the content, and the API documents bytes as text.
      headers: { 'Content-Type': picture.type === 'image/png' ? 'image/png' : 'image/jpeg' },
      body: picture as unknown as string,
      bodySerializer: (body) => body,
    })
    if (!stored.response.ok) return refusedPage(visit, connection, stored, mode)
  }
  const changed = await visit.api.PATCH('/api/v1/relay/connections/{name}', { params, body: { on_loss: mode } })
  if (!changed.response.ok) return refusedPage(visit, connection, changed, mode)
  const isUnused = picture !== undefined && mode !== 'slate'
  return { redirectTo: `${pathOf(connection)}?done=${isUnused ? 'slate_saved' : 'saved'}` }
}

export const removeSlate: PageHandler = async (visit) => {
  const connection = await findConnection(visit)
  if (!connection) return problemPage('not_found')
  const params = { path: { name: connection.name } }
  const result = await visit.api.DELETE('/api/v1/relay/connections/{name}/slate', { params })
  // It may have been removed in another tab.
  return result.response.ok || result.response.status === 404
    ? { redirectTo: `${pathOf(connection)}?done=slate_removed` }
    : refusedPage(visit, connection, result, connection.on_loss)
}

const pathOf = ({ name }: Connection): string => `/connections/${name}`

/** Undefined as well for a name that cannot be a segment of a path. */
async function findConnection({ api, params }: Visit): Promise<Connection | undefined> {
  const { name = '' } = params
  if (!isPlainSegment(name)) return undefined
  const { connections } = expectSuccess(await api.GET('/api/v1/relay/connections'), 'The list of connections')
  return connections.find((connection) => connection.name === name)
}

interface OnLossValues {
  readonly mode: OnLoss
  /** Undefined when none was chosen. */
  readonly picture: File | undefined
}

/** Undefined when it is too large. */
async function readForm(visit: Visit): Promise<OnLossValues | undefined> {
  try {
    const form = await visit.readFormWithFiles(formBytesMax)
    const picture = form.get('picture')
    return {
      mode: unchecked<OnLoss>(String(form.get('on_loss') ?? '')),
      // Browsers send an empty file without a name for a field without a file.
      picture: picture instanceof File && (picture.name !== '' || picture.size > 0) ? picture : undefined,
    }
  } catch (error) {
    if (error instanceof BodyTooLargeError) return undefined
    throw error
  }
}

const tooLarge: Problem = {
  code: 'payload_too_large',
  text: `The picture has more than ${slateBytesMax / 1024 / 1024} MB. Save it as JPEG, or with fewer pixels.`,
  field: 'picture',
}

/** The field that a refusal is about. */
const fieldOf: ReadonlyMap<string, string> = new Map([
  ['invalid_image', 'picture'],
  ['invalid_request', 'on_loss'],
])

const refusedPage = (visit: Visit, connection: Connection, result: ApiResult, mode: OnLoss): PageResult => {
  const problem = problemOf(result, {
    invalid_request: 'Choose what players see.',
    not_found: 'This connection no longer exists.',
  })
  const field = fieldOf.get(problem.code)
  return connectionPage(visit, connection, {
    status: result.response.status,
    problem: field === undefined ? problem : { ...problem, field },
    mode,
  })
}

/** By the `done` parameter. It may be forged, so other values show nothing. */
const notices: ReadonlyMap<string, string> = new Map([
  ['saved', 'Saved.'],
  ['slate_saved', 'Saved. Your picture is kept, and shown once you choose “My picture”.'],
  ['slate_removed', 'Picture removed.'],
])

interface Refusal {
  readonly status: number
  readonly problem: Problem
  /** What was chosen. */
  readonly mode?: OnLoss
}

function connectionPage(visit: Visit, connection: Connection, refused?: Refusal): PageResult {
  const done = refused ? '' : (visit.query.get('done') ?? '')
  const notice = notices.get(done)
  const problem = refused?.problem
  return {
    name: 'connection',
    title: connection.name,
    section: 'relays',
    status: refused?.status ?? 200,
    styles: ['connection.css'],
    scripts: ['connection.js'],
    page: (
      <>
        <div class="page-head">
          <h1>{connection.name}</h1>
          <a class="link" href="/connections">
            All connections
          </a>
          <p class="lead">What OBS and other players of this connection get while your stream is away.</p>
        </div>
        <ProblemMessage problem={problem?.field === undefined ? problem : undefined} />
        {notice ? <NoticeMessage notice={{ code: done, text: notice }} /> : null}
        <div class="grid-2">
          <OnLossForm
            path={pathOf(connection)}
            mode={refused?.mode ?? connection.on_loss}
            problem={problem}
            now={<Now connection={connection} />}
          />
          <Slate path={pathOf(connection)} connection={connection} />
        </div>
      </>
    ),
  }
}

const Now = ({ connection }: { readonly connection: Connection }) => (
  <p data-now={connection.on_loss}>
    <strong>Now:</strong> players {describeOnLoss(connection)}.{' '}
    {connection.session_id === null
      ? 'There is no relay running: a change applies from the next start.'
      : 'The running relay follows a change within seconds.'}
  </p>
)
