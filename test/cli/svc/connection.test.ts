/** The API and the password that svc finds, and its exit codes without them. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { writeRunningStack } from '../../../cli/stack-state.ts'
import { provideSecrets } from '../../../platform/embedded/secrets.ts'
import { startApi, type TestApi } from '../../support/api.ts'
import { temporaryFolder } from '../../support/folders.ts'
import { findFreePort } from '../../support/ports.ts'
import { operatorPassword } from '../../support/relays.ts'
import { operatorVariables, runSvc, runSvcHere } from '../../support/svc.ts'

let api: TestApi
beforeAll(async () => {
  api = await startApi({ SVC_OPERATOR_PASSWORD: operatorPassword })
})

const noSecrets = {
  SVC_JWT_SECRET: undefined,
  SVC_RELAY_AUTH_SECRET: undefined,
  OAUTH_ENCRYPTION_KEY: undefined,
  SVC_BILLING_WEBHOOK_SECRET: undefined,
  SVC_OBS_PROVIDER_ID: undefined,
  SVC_OAUTH_SIGNING_KEYS: undefined,
}

test('the stack that runs in the data folder is found, with its generated password', async () => {
  const folder = await temporaryFolder()
  const { SVC_OPERATOR_PASSWORD } = await provideSecrets(folder, { ...noSecrets, SVC_OPERATOR_PASSWORD: undefined })
  const own = await startApi({ SVC_OPERATOR_PASSWORD })
  const stack = { pid: process.pid, api: own.url, site: '', temporalUi: undefined, servers: {} }
  await writeRunningStack(folder, stack)
  const { code, stdout } = await runSvc(['regions', 'list'], { SVC_DATA_DIR: folder })
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^REGION .*\n\S+ /) })
})

test('address and password can be named by options, and the password stands in a file', async () => {
  const file = join(await temporaryFolder(), 'password')
  await writeFile(file, `${operatorPassword}\n`)
  const words = ['regions', 'list', '--api', `${api.url}/`, '--password-file', file]
  expect(
    await runSvcHere(words, { SVC_API_URL: 'http://localhost:9', SVC_OPERATOR_PASSWORD: 'another password' }),
  ).toMatchObject({
    code: 0,
  })
  expect(await runSvcHere(words.with(-1, `${file}.missing`))).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--password-file cannot be read'),
  })
})

test('without a stack the message says how to name the API, with exit code 4', async () => {
  const { code, stderr } = await runSvcHere(['jobs', 'list'])
  expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringMatching(/npm start.*--api URL/) })
})

test('an API that does not answer is named with its address, with exit code 4', async () => {
  const url = `http://127.0.0.1:${await findFreePort()}`
  const { code, stderr } = await runSvcHere(['jobs', 'list'], operatorVariables(url))
  expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringContaining(`${url}/api/v1/admin/jobs`) })
})

test('a wrong password, a missing one and an API without operators end with exit code 5', async () => {
  const wrong = await runSvc(['jobs', 'list'], {
    ...operatorVariables(api.url),
    SVC_OPERATOR_PASSWORD: 'no such password',
  })
  expect(wrong).toMatchObject({ code: 5, stdout: '', stderr: expect.stringContaining('401 invalid_operator') })
  const missing = await runSvcHere(['jobs', 'list'], { SVC_API_URL: api.url })
  expect(missing).toMatchObject({ code: 5, stderr: expect.stringContaining('SVC_OPERATOR_PASSWORD_FILE') })
  const without = await startApi()
  const refused = await runSvcHere(['jobs', 'list'], operatorVariables(without.url))
  expect(refused).toMatchObject({ code: 5, stderr: expect.stringContaining('no routes for operators') })
})

test('an address that is no URL of the web is refused with exit code 2', async () => {
  const { code, stderr } = await runSvcHere(['jobs', 'list', '--api', 'localhost:8080'])
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('localhost:8080') })
})
