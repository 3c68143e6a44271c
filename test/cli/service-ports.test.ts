/** The ports that a local start chooses. */
import { createServer, type Server } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { chooseServicePorts } from '../../cli/service-ports.ts'
import { readStackConfig } from '../../platform/config/stack.ts'
import { temporaryFolder } from '../support/folders.ts'
import { findFreePort } from '../support/ports.ts'

/** Another program on a port of this machine. */
async function occupy(port = 0): Promise<number> {
  const server = await new Promise<Server>((resolve) => {
    const listening: Server = createServer().listen(port, () => resolve(listening))
  })
  onTestFinished(() => void server.close())
  return (server.address() as { port: number }).port
}

async function choose(variables: Record<string, string>, dataDir?: string) {
  const notes: string[] = []
  const notify = (text: string) => void notes.push(text)
  const ports = await chooseServicePorts(readStackConfig(variables), dataDir ?? (await temporaryFolder()), notify)
  return { ...ports, notes }
}

test('the API and the site get different ports', async () => {
  const { api, site } = await choose({})
  expect(api).not.toBe(site)
})

test('the next start uses the same ports, and reports one that is taken meanwhile', async () => {
  const dataDir = await temporaryFolder()
  const [first, second] = [await findFreePort(), await findFreePort()]
  await choose({ PORT: String(first), SVC_SITE_PORT: String(second) }, dataDir)
  expect(await choose({}, dataDir)).toMatchObject({ api: first, site: second, notes: [] })
  await occupy(second)
  const third = await choose({}, dataDir)
  expect(third.site).not.toBe(second)
  expect(third.notes).toEqual([`! Port ${second} is taken by another program: the site listens on ${third.site}`])
})

test('a configured port that is taken is an error with the way out', async () => {
  const taken = await occupy()
  await expect(choose({ SVC_SITE_PORT: String(taken) })).rejects.toThrow(
    `Port ${taken} for the site (SVC_SITE_PORT) is taken by another program. End that program, set SVC_SITE_PORT`,
  )
  await expect(choose({ PORT: String(taken) })).rejects.toThrow(`Port ${taken} for the API (PORT)`)
})

test('the same port for both is an error', async () => {
  const port = String(await findFreePort())
  await expect(choose({ PORT: port, SVC_SITE_PORT: port })).rejects.toThrow('need different ports')
})

test('a port that is configured for the site is not given to the API, which had it last time', async () => {
  const dataDir = await temporaryFolder()
  const [first, second] = [await findFreePort(), await findFreePort()]
  await choose({ PORT: String(first), SVC_SITE_PORT: String(second) }, dataDir)
  const { api, site } = await choose({ SVC_SITE_PORT: String(first) }, dataDir)
  expect(site).toBe(first)
  expect(api).not.toBe(first)
})
