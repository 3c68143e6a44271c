/** The doctor waits for the real time limits of its checks, which are tuned to each other. */
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { examine } from '../../cli/doctor/checks.ts'
import { readTarget } from '../../cli/doctor/target.ts'
import { testEnvironment } from '../support/environment.ts'
import { temporaryFolder } from '../support/folders.ts'

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
