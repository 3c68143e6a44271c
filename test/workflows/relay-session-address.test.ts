/** Sessions that keep their address at Hetzner Cloud when their server is lost. Each test has a region of its own. */
import { EventEmitter, once } from 'node:events'
import { beforeAll, describe, expect, test } from 'vitest'
import { type CloudRegion, startHetznerRegions } from '../support/hetzner-service.ts'
import { runJob } from '../support/jobs.ts'
import { eventually } from '../support/relays.ts'

const names = ['kept', 'twice', 'deleted', 'stopped', 'crashed', 'left'] as const
const secondsMax = 60
/** A server whose creation was not answered is proven to be gone 60 s later at the earliest. */
const unansweredSecondsMax = 150

let inRegion: (name: (typeof names)[number]) => CloudRegion

beforeAll(async () => {
  inRegion = await startHetznerRegions({
    names,
    requestMillisMax: 2_000,
    // One place: the lost server has to make room.
    settings: { stable_address: true, capacity: 1 },
    variables: {
      SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '20',
      SVC_RELAY_GRACE_SECONDS: '60',
      SVC_RELAY_REPLACEMENT_SECONDS: '120',
    },
  })
})

type Started = Awaited<ReturnType<CloudRegion['start']>>

const hostOf = async ({ user }: Started) => (await user.active()).session?.relay_host

const addressesOf = ({ cloud }: CloudRegion) => cloud.project.addresses().map(({ ip }) => ip)

async function startActive(region: CloudRegion) {
  const started = await region.start()
  await region.untilState(started.sessionId, 'active')
  return { ...started, host: await hostOf(started) }
}

/** Switches the present server off, and resolves with the session once another one has taken its place. */
async function loseServer(region: CloudRegion, { user }: Started) {
  const [server] = region.cloud.project.servers()
  if (!server) throw new Error('there is no server')
  server.isOff = true
  return eventually(
    async () => (await user.active()).session,
    (session) => session?.state === 'active' && session.instance_id !== server.name,
    secondsMax,
  )
}

async function stop(region: CloudRegion, { user, sessionId }: Started, cleanUpSecondsMax = secondsMax) {
  await user.stop({ session_id: sessionId, immediate: true })
  await region.untilCleanedUp(sessionId, cleanUpSecondsMax)
  await eventually(
    async () => addressesOf(region),
    (all) => all.length === 0,
  )
}

describe.concurrent('a session', { timeout: 4 * secondsMax * 1000 }, () => {
  test('has the address of its first server over replacements, and gives it back at its end', async () => {
    const region = inRegion('kept')
    const started = await startActive(region)
    expect(await loseServer(region, started)).toMatchObject({
      detail: 'relay_replaced',
      relay_host: started.host,
    })
    expect(await loseServer(region, started)).toMatchObject({ relay_host: started.host })
    expect(addressesOf(region)).toEqual([started.host])
    await stop(region, started)
  })

  test('gets another address where an operator has deleted its own', async () => {
    const region = inRegion('deleted')
    const started = await startActive(region)
    const [address] = region.cloud.project.addresses()
    region.cloud.onStage = async (stage, { method, path }) => {
      if (stage === 'performed' && method === 'DELETE' && path.startsWith('/servers') && address)
        region.cloud.project.deleteAddress(address)
      return undefined
    }
    const session = await loseServer(region, started)
    region.cloud.onStage = undefined
    expect(session?.relay_host).not.toBe(started.host)
    expect([session?.relay_host]).toEqual(addressesOf(region))
    await stop(region, started)
  })

  test('that is stopped while its replacement is created leaves neither a server nor an address', async () => {
    const region = inRegion('stopped')
    const started = await startActive(region)
    const requests = new EventEmitter()
    const creating = once(requests, 'creating')
    const stopped = once(requests, 'stopped')
    region.cloud.onStage = async (stage, { method, path }) => {
      if (stage !== 'performed' || method !== 'POST' || path !== '/servers') return undefined
      requests.emit('creating')
      await stopped
      return undefined
    }
    for (const server of region.cloud.project.servers()) server.isOff = true
    await creating
    await started.user.stop({ session_id: started.sessionId, immediate: true })
    requests.emit('stopped')
    await stop(region, started, unansweredSecondsMax)
  })

  test('keeps its address when the reply to the creation of its next server is lost', async () => {
    const region = inRegion('crashed')
    const started = await startActive(region)
    region.cloud.loseReplies(1, { method: 'POST', url: /^\/servers/ })
    const session = await loseServer(region, started)
    expect(session?.relay_host).toBe(started.host)
    await stop(region, started)
  })

  test('leaves no address behind whose reservation was not recorded: the sweep finds it, and it is released', async () => {
    const region = inRegion('left')
    const started = await startActive(region)
    await stop(region, started)
    const labels = { 'svc-instance': 'hetzner-0123456789abcdef', 'svc-session': '', 'svc-region': 'left' }
    const { addressId } = region.cloud.project.addForeign('hetzner-0123456789abcdef', labels)
    const [address] = region.cloud.project.addresses().filter(({ id }) => id === addressId)
    Object.assign(address ?? {}, { labels, autoDelete: false, serverId: 0 })
    for (const server of region.cloud.project.servers()) region.cloud.project.delete(server)

    const { sql } = region.service.api
    await runJob(sql, 'sweep_orphans')
    expect(addressesOf(region)).toEqual([address?.ip])
    await sql`
      update relay_addresses set next_attempt_at = now() where region = 'left'`
    await eventually(
      async () => addressesOf(region),
      (all) => all.length === 0,
    )
  })
})
