import { createServer, type Server } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { chooseServicePorts } from '../../cli/service-ports.ts'
import { readStackConfig } from '../../platform/config/stack.ts'
import { freePort } from '../../platform/embedded/ports.ts'
import { temporaryFolder } from '../support/folders.ts'

/** Somebody else on a port of this machine. */
async function occupy(port = 0): Promise<number> {
  const server = await new Promise<Server>((resolve) => {
    const listening: Server = createServer().listen(port, () => resolve(listening))
  })
  onTestFinished(() => void server.close())
  return (server.address() as { port: number }).port
}

async function choose(variables: Record<string, string>, dataDir?: string) {
  const notes: string[] = []
  const note = (text: string) => void notes.push(text)
  const ports = await chooseServicePorts(readStackConfig(variables), dataDir ?? (await temporaryFolder()), note)
  return { ...ports, notes }
}

test('the API and the site get a port each', async () => {
  const { api, site } = await choose({})
  expect(api).not.toBe(site)
})

test('the next start gets the same ports, and says so when one is taken meanwhile', async () => {
  const dataDir = await temporaryFolder()
  const [first, second] = [await freePort(), await freePort()]
  await choose({ PORT: String(first), SVC_SITE_PORT: String(second) }, dataDir)
  expect(await choose({}, dataDir)).toMatchObject({ api: first, site: second, notes: [] })
  await occupy(second)
  const third = await choose({}, dataDir)
  expect(third.site).not.toBe(second)
  expect(third.notes).toEqual([`! Port ${second} is taken by another program: the site listens on ${third.site}`])
})

test('a port that somebody asked for and that is taken is an error that says what to do', async () => {
  const taken = await occupy()
  await expect(choose({ SVC_SITE_PORT: String(taken) })).rejects.toThrow(
    `Port ${taken} for the site (SVC_SITE_PORT) is taken by another program. End that program, set SVC_SITE_PORT`,
  )
  await expect(choose({ PORT: String(taken) })).rejects.toThrow(`Port ${taken} for the API (PORT)`)
})

test('one port for both is an error', async () => {
  const port = String(await freePort())
  await expect(choose({ PORT: port, SVC_SITE_PORT: port })).rejects.toThrow('a port each')
})

test('a port that was asked for the one is not given to the other, who had it last time', async () => {
  const dataDir = await temporaryFolder()
  const [first, second] = [await freePort(), await freePort()]
  await choose({ PORT: String(first), SVC_SITE_PORT: String(second) }, dataDir)
  const { api, site } = await choose({ SVC_SITE_PORT: String(first) }, dataDir)
  expect(site).toBe(first)
  expect(api).not.toBe(first)
})
