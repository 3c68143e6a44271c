/** The names of relays over a session, with a real name server, api and worker, and the double of Hetzner Cloud. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { SessionView } from '../../api/views/relay-session.ts'
import { recordSuspicions } from '../../db/relay/health.ts'
import { atEnd } from '../support/at-end.ts'
import { startMachines } from '../support/hetzner-machines.ts'
import { type HetznerServer, startHetznerServer } from '../support/hetzner-server.ts'
import { type NameServer, startNameServer, zone } from '../support/name-server.ts'
import { eventually, type RelayUser, startService, type TestService } from '../support/relays.ts'

const hetzner = { location: 'fsn1', server_type: 'cx22', image: 'debian-13' }
let cloud: HetznerServer
let names: NameServer
let service: TestService

beforeAll(async () => {
  cloud = await startHetznerServer()
  atEnd(() => cloud.close())
  const server = await startNameServer()
  atEnd(() => server.close())
  names = server
  service = await startService({
    variables: {
      SVC_REGIONS: JSON.stringify([{ region: 'eu', display_name: 'Europe', provider: 'hetzner', hetzner }]),
      SVC_HETZNER_TOKEN: cloud.token,
      SVC_HETZNER_API_URL: cloud.apiUrl,
      SVC_FLEET_NAME: 'tests',
      SVC_RELAY_DOMAIN: zone,
      SVC_DNS_SERVER: `127.0.0.1:${server.port}`,
      SVC_DNS_KEY: `${server.key.name}:${server.key.secret.toString('base64')}`,
      SVC_RELAY_PROVISION_TIMEOUT_SECONDS: '60',
      SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '30',
      SVC_RELAY_REPLACEMENT_SECONDS: '120',
    },
  })
  const [masterSecret = ''] = service.api.services.config.relayAuthSecrets
  startMachines({ cloud, api: service.api, masterSecret })
})

const untilSession = (user: RelayUser, isWanted: (session: SessionView) => boolean) =>
  eventually(
    async () => (await user.active()).session as SessionView,
    (session) => session !== null && isWanted(session),
    60,
  )

const isNamed = ({ state, relay_host: host }: SessionView) => state === 'active' && host?.endsWith(zone) === true
const labelOf = ({ relay_host: host }: SessionView) => host?.replace(`.${zone}`, '') ?? ''
const serverOf = ({ instance_id: id }: SessionView) => cloud.project.servers().find(({ name }) => name === id)

async function startNamed() {
  const user = await service.user()
  await user.start()
  return { user, session: await untilSession(user, isNamed) }
}

describe('the name of a connection', () => {
  test('leads to the present instance over a replacement, and nowhere after the session', async () => {
    const { user, session } = await startNamed()
    const label = labelOf(session)
    expect(label).toMatch(/^[a-z]{10}$/)
    expect((await names.addressesOf(label)).v4).toEqual([serverOf(session)?.address])
    expect(session.connect?.srtla_url).toContain(`srtla://${label}.${zone}:5000`)

    const lost = serverOf(session)
    if (lost) lost.isOff = true
    await recordSuspicions(service.api.sql, [
      { id: session.session_id, instanceId: session.instance_id ?? null, quietSeconds: 0 },
    ])
    const after = await untilSession(user, (now) => isNamed(now) && now.instance_id !== session.instance_id)
    expect(after.connect).toMatchObject({ srtla_url: session.connect?.srtla_url, srt_url: session.connect?.srt_url })
    await eventually(
      () => names.addressesOf(label),
      ({ v4 }) => v4.join() === serverOf(after)?.address,
    )
    // Long before the next sweep that nothing triggers.
    await eventually(
      () => serverOf(session) === undefined,
      (isDeleted) => isDeleted,
      10,
    )

    await user.stop({ session_id: session.session_id, immediate: true })
    await eventually(
      () => names.addressesOf(label),
      ({ v4 }) => v4.length === 0,
    )
    expect(await names.textsOf(label)).toEqual(['svc-fleet=tests'])
    await user.start()
    expect(labelOf(await untilSession(user, isNamed))).toBe(label)
    await user.stop({ connection_id: 'default', immediate: true })
  })

  test('leaves before its address: no server is deleted while the name leads to it', async () => {
    const { user, session } = await startNamed()
    const label = labelOf(session)
    const { address } = serverOf(session) ?? {}
    await names.stop()
    await user.stop({ session_id: session.session_id, immediate: true })
    await eventually(
      () => service.api.sql`select from relay_names where label = ${label} and failing_since is not null`,
      (rows) => rows.length === 1,
    )
    expect(serverOf(session)).toBeDefined()
    await names.start()
    await eventually(
      () => serverOf(session) === undefined,
      (isDeleted) => isDeleted,
      90,
    )
    expect((await names.addressesOf(label)).v4).not.toContain(address)
  })

  test('does not delay a start while the name server is away: the session has its address until then', async () => {
    await names.stop()
    const user = await service.user()
    await user.start()
    const session = await untilSession(user, ({ state }) => state === 'active')
    expect(session.relay_host).toBe(serverOf(session)?.address)
    await names.start()
    const named = await untilSession(user, isNamed)
    expect(named.session_id).toBe(session.session_id)
    await user.stop({ session_id: session.session_id, immediate: true })
  })

  test('is removed with the account, after two observations', async () => {
    const { user, session } = await startNamed()
    const label = labelOf(session)
    await user.stop({ session_id: session.session_id, immediate: true })
    await eventually(
      () => names.addressesOf(label),
      ({ v4 }) => v4.length === 0,
    )
    await service.api.sql`delete from connections where label = ${label}`
    const unowned = () => service.api.sql`select from relay_names where label = ${label} and unowned_since is not null`
    await eventually(unowned, (rows) => rows.length === 1)
    expect(await names.textsOf(label)).toEqual(['svc-fleet=tests'])
    await service.api.sql`
      update relay_names set unowned_since = now() - interval '61 seconds', next_attempt_at = now() where label = ${label}`
    await eventually(
      () => names.textsOf(label),
      (texts) => texts.length === 0,
    )
  })
})
