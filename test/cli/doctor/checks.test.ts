import { utimes, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { examine } from '../../../cli/doctor/checks.ts'
import { readTarget } from '../../../cli/doctor/target.ts'
import { testEnvironment } from '../../support/environment.ts'
import { temporaryFolder } from '../../support/folders.ts'

/** host:port of a server that accepts connections and never answers. */
async function givenSilentServer(): Promise<string> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('servers that never answer are all named within the time of one check', async () => {
  const silent = await givenSilentServer()
  const target = await readTarget(
    testEnvironment({
      DATABASE_URL: `postgres://svc:pw@${silent}/svc`,
      TEMPORAL_ADDRESS: silent,
      SVC_API_URL: `http://${silent}`,
      SVC_SITE_URL: `http://${silent}`,
      SVC_SMTP_URL: `smtp://${silent}?tls=off`,
      SVC_DATA_DIR: await temporaryFolder(),
    }),
  )
  const results = await examine(target)
  const statusOf = (name: string) => results.find((result) => result.name === name)?.status
  for (const name of ['postgres', 'temporal', 'api', 'site', 'smtp'])
    expect([name, statusOf(name)]).toEqual([name, 'fail'])
  for (const name of ['migrations', 'task-queue', 'worker', 'clocks', 'operator-password', 'encryption-key'])
    expect([name, statusOf(name)]).not.toEqual([name, 'fail'])
  expect(statusOf('disk')).not.toBe('fail')
})

test('a secret in a file that is older than a year is a warning', async () => {
  const file = join(await temporaryFolder(), 'jwt')
  const { SVC_JWT_SECRET = '', ...rest } = testEnvironment()
  await writeFile(file, SVC_JWT_SECRET)
  const longAgo = new Date(Date.now() - 400 * 86_400_000)
  await utimes(file, longAgo, longAgo)
  const target = await readTarget({ ...rest, SVC_JWT_SECRET_FILE: file, SVC_DATA_DIR: await temporaryFolder() })
  const secrets = (await examine(target)).find(({ name }) => name === 'secrets')
  expect(secrets).toMatchObject({ status: 'warn', detail: `${file} is 400 days old` })
})
