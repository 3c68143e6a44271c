/**
 * The live service keeps to its OpenAPI document, by the checks of Schemathesis; http-contract.toml names their
 * exceptions.
 */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { activeSession } from '../../api/views/relay-session-examples.ts'
import { signUp } from '../support/api.ts'
import { appVariables, begin, connectApp } from '../support/apps.ts'
import { billingEvent, fetchEvents, sandboxSender } from '../support/billing.ts'
import { pluginLogins } from '../support/plugin-logins.ts'
import { eventually, operator, operatorPassword, startService, type TestService } from '../support/relays.ts'

const config = fileURLToPath(new URL('http-contract.toml', import.meta.url))
const { region } = activeSession
/** For each operation. `npm run soak -- contract` generates more. */
const examples = process.env.HTTP_CONTRACT_EXAMPLES ?? '10'

test('every reply of the live service is one that its OpenAPI document describes', { timeout: 600_000 }, async () => {
  const service = await startService({
    variables: {
      ...(await appVariables()),
      SVC_REGIONS: JSON.stringify([{ region, display_name: 'This machine', provider: 'local', default: true }]),
    },
  })
  const caller = await signUp(service.api)
  // An account of its own, whose sign-ins no request ends.
  const appOwner = await signUp(service.api)
  const { access_token: appToken } = await connectApp(service.api, appOwner.bearer)
  const document = await describeExisting(service, caller)
  const [secret = ''] = service.api.services.config.relayAuthSecrets
  const variables = {
    OPERATOR_PASSWORD: operatorPassword,
    RELAY_SECRET: secret,
    USER_EMAIL: caller.email,
    USER_PASSWORD: caller.password,
    APP_TOKEN: appToken,
  }
  allowWrongPasswords(service)
  const args = [document, '--url', service.api.url]
  const { code, output } = await runSchemathesis(args, { folder: service.dataDir, variables })
  expect(code, output).toBe(0)
})

/**
 * Clears the counters all the time: the wrong passwords of the requests would have the account's own sign-in refused.
 */
function allowWrongPasswords({ api }: TestService): void {
  const timer = setInterval(() => api.sql`delete from rate_limit_windows`.catch(() => undefined), 250)
  onTestFinished(() => clearInterval(timer))
}

type Document = { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> }
interface Operation {
  readonly parameters?: { readonly name: string; example?: unknown }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { examples?: unknown }>> }
}

/**
 * Creates an account, a relay session, a billing event and a plugin login, and makes their values the examples of the
 * document, so that the requests reach more than the replies for unknown ids.
 * @returns the path of the document.
 */
async function describeExisting({ api, dataDir }: TestService, caller: { userId: string; bearer: string }) {
  const owner = await signUp(api)
  for (const userId of [caller.userId, owner.userId])
    await api.post(`/admin/users/${userId}/grant`, { plan_tier: 'paid', addons: 3 }, { headers: operator })
  const key = { 'Idempotency-Key': crypto.randomUUID() }
  const started = await api.post('/relay/start', {}, { bearer: caller.bearer, headers: key })
  expect(started.status).toBe(201)
  const { session } = await eventually(
    async () => (await api.get<{ session: Session | null }>('/relay/active', { bearer: caller.bearer })).body,
    (active) => active.session?.state === 'active',
  )
  if (!session) throw new Error('the relay is not active')
  await sandboxSender(api).send(billingEvent('payment.refunded', { user_id: owner.userId, amount: 'partial' }))
  const [event] = (await fetchEvents(api)).events
  const attempt = await pluginLogins(api).startPlugin()
  const text = await (await fetch(`${api.url}/openapi.json`)).text()
  const replaced = [
    [activeSession.session_id, session.session_id],
    [activeSession.instance_id, session.instance_id],
    [activeSession.pair_token, session.pair_token],
  ].reduce((result, [example, value]) => result.replaceAll(`"${example}"`, `"${value}"`), text)
  const document = JSON.parse(replaced) as Document
  const { login_attempt_id, poll_token } = attempt
  const bodiesByPath = {
    '/api/v1/auth/login': { email: owner.email, password: owner.password },
    '/api/v1/auth/plugin/login/poll': { login_attempt_id, poll_token },
    '/api/v1/admin/users/{id}/erase': { email: owner.email, reason: 'Requested by the owner of the account' },
  }
  for (const [path, value] of Object.entries(bodiesByPath)) setBodyExample(document, path, value)
  const idsByPath = {
    '/api/v1/admin/users/': owner.userId,
    '/api/v1/admin/sessions/': session.session_id,
    '/api/v1/relay/sessions/': session.session_id,
    '/api/v1/admin/billing/events/': event?.id,
    '/api/v1/auth/plugin/login/attempts/': attempt.login_attempt_id,
    '/api/v1/auth/apps/requests/': (await begin(api)).id,
  }
  for (const [path, id] of Object.entries(idsByPath)) setIdExamples(document, path, id)
  const file = join(dataDir, 'openapi.json')
  await writeFile(file, JSON.stringify(document))
  return file
}

interface Session {
  readonly state: string
  readonly session_id: string
  readonly instance_id: string
  readonly pair_token: string
}

function setIdExamples({ paths }: Document, prefix: string, id: string | undefined): void {
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    path.startsWith(`${prefix}{id}`) ? Object.values(item) : [],
  )
  expect(operations, prefix).not.toEqual([])
  for (const { parameters = [] } of operations)
    for (const parameter of parameters) if (parameter.name === 'id') parameter.example = id
}

function setBodyExample({ paths }: Document, path: string, value: object): void {
  const content = paths[path]?.post?.requestBody?.content['application/json']
  if (!content) throw new Error(`POST ${path} has no body`)
  content.examples = { existing: { value } }
}

interface Run {
  /** Where it stores what it has found. */
  readonly folder: string
  readonly variables: Readonly<Record<string, string>>
}

/** Runs it with the same requests each time. It ends with code 1 when a check has failed. */
function runSchemathesis(args: readonly string[], { folder, variables }: Run) {
  const options = [
    '--config-file',
    config,
    'run',
    '--generation-deterministic',
    '--max-examples',
    examples,
    '--no-color',
    '--warnings',
    'off',
  ]
  return new Promise<{ readonly code: number; readonly output: string }>((resolve, reject) => {
    const child = execFile(
      'schemathesis',
      [...options, ...args],
      {
        cwd: folder,
        env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', ...variables },
        maxBuffer: 2 ** 26,
      },
      (_, stdout, stderr) => resolve({ code: child.exitCode ?? -1, output: stdout + stderr }),
    )
    child.on('error', reject)
  })
}
