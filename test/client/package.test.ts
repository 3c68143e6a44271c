/** The package `relay-control-client`, as `npm pack ./client` makes it, in a project that has nothing else. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { startApi, type TestApi } from '../support/api.ts'
import { atEnd } from '../support/at-end.ts'
import { type ClientProject, makeClientProject } from '../support/client-package.ts'
import { makeFolder, removeFolder } from '../support/folders.ts'

const run = promisify(execFile)

/** Prints the id of the account and the code of a refusal. Its types are part of the test. */
const sample = `
import { ApiError, bearer, createApiClient, expectSuccess, type Reply } from 'relay-control-client'

const [baseUrl = '', token = ''] = process.argv.slice(2)
const client = createApiClient({ baseUrl, headers: bearer(token) })
const summary: Reply<'get', '/auth/session'> = expectSuccess(await client.GET('/api/v1/auth/session'))
const id: string = summary.user.id
const refused = await createApiClient({ baseUrl }).GET('/api/v1/auth/session')
try {
  expectSuccess(refused)
} catch (error) {
  if (error instanceof ApiError) console.log(JSON.stringify({ id, code: error.code }))
}
`

let project: ClientProject
let api: TestApi

beforeAll(async () => {
  const folder = await makeFolder()
  atEnd(() => removeFolder(folder))
  ;[project, api] = await Promise.all([makeClientProject(folder), startApi()])
}, 120_000)

const readManifest = async (path: string) =>
  JSON.parse(await readFile(path, 'utf8')) as { version: string; engines: object; dependencies?: object }

test('a project that installs the tarball offline checks its types and talks to the API', async () => {
  const user = await api.given.user()
  await project.write('main.ts', sample)
  await project.compile()
  const { stdout } = await run(process.execPath, ['build/main.js', api.url, user.bearer], { cwd: project.folder })
  expect(JSON.parse(stdout)).toEqual({ id: user.userId, code: 'unauthorized' })
}, 60_000)

test.each([
  ["client.GET('/api/v1/relay/nothing', {})", /not assignable/],
  ["client.POST('/api/v1/relay/stop', { body: { session_id: 1 } })", /number/],
  ["client.POST('/api/v1/relay/start', { body: {} })", /'Idempotency-Key'|header/],
])(
  'a request that the API does not have is an error of types: %s',
  async (request, error) => {
    const text = `import { createApiClient } from 'relay-control-client'\nconst client = createApiClient({ baseUrl: '' })\n`
    await project.write('wrong.ts', `${text}await ${request}\n`)
    await expect(project.compile()).rejects.toThrow(error)
  },
  60_000,
)

test('the package has the version of the service, the same engines, and no dependencies', async () => {
  const packed = await readManifest(join(project.folder, 'node_modules/relay-control-client/package.json'))
  const { version, engines } = await readManifest('package.json')
  expect([packed.version, packed.engines, packed.dependencies]).toEqual([version, engines, undefined])
})
