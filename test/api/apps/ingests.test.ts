/** What the OBS source lists and plays: one ingest for each connection. */
import { describe, expect, test } from 'vitest'
import { sourceApp } from '../../../domain/identity/apps.ts'
import { givePlan, startApi, type TestApi } from '../../support/api.ts'
import { appVariables, connectApp } from '../../support/apps.ts'
import { writeActive } from '../../support/relay-rows.ts'

interface Ingest {
  readonly id: string
  readonly name: string
  readonly detail: string
  readonly online: boolean
  readonly bitrate_kbps: number
}

const region = (fields: object) =>
  JSON.stringify([{ region: 'eu', display_name: 'Frankfurt', default: true, capacity: 50, ...fields }])
const cloud = region({
  provider: 'hetzner',
  hetzner: { location: 'fsn1', server_type: 'cx22', image: 'debian-12' },
})

async function startWith(variables: Readonly<Record<string, string>>): Promise<TestApi> {
  return startApi({ ...(await appVariables()), ...variables })
}

/** An account with a plan and the source, and the means to write what its relays do. */
async function connected(api: TestApi) {
  const user = await api.given.user()
  await givePlan(api.sql, user.userId, 3)
  const { access_token } = await connectApp(api, user.bearer)
  const list = async () => {
    const { status, body } = await api.get<{ ingests: readonly Ingest[] }>('/ingests', { bearer: access_token })
    expect([status, Object.keys(body)]).toEqual([200, ['ingests']])
    for (const { id } of body.ingests) expect(id).toMatch(/^[A-Za-z0-9._:-]{1,128}$/)
    return body.ingests
  }
  return {
    user,
    bearer: access_token,
    list,
    only: async () => (await list())[0] as Ingest,
    resolve: async (id: string) =>
      api.get<{ url?: string; error?: string }>(`/ingests/${id}/url`, { bearer: access_token }),
    start: async (connection_id = 'default') => {
      const headers = { 'Idempotency-Key': crypto.randomUUID() }
      const { status, body } = await api.post<{ session: { session_id: string } }>(
        '/relay/start',
        { connection_id },
        { bearer: user.bearer, headers },
      )
      expect(status).toBe(201)
      return body.session.session_id
    },
    keys: async () =>
      api.sql<{ id: string }[]>`select id from play_keys where user_id = ${user.userId} and kind = 'app'`,
  }
}

const writeIngest = (api: TestApi, sessionId: string, bitrateKbps: number) => api.sql`
  insert into relay_health (session_id, instance_id, last_report_at, ingest_at, is_publishing, bitrate_kbps, links,
    players, publishing_since)
  values (${sessionId}, 'i-1', now(), now(), ${bitrateKbps > 0}, ${bitrateKbps}, 1, 0, now())`

/** Makes the transitions of an active session to its end. */
async function writeEnded({ sql }: TestApi, id: string): Promise<void> {
  await sql`
    update relay_sessions set state = 'grace', reason = 'stop_requested', version = version + 1,
      grace_started_at = now(), grace_ends_at = now()
    where id = ${id}`
  await sql`
    update relay_sessions set state = 'stopped', reason = 'grace_elapsed', version = version + 1, stopped_at = now(),
      grace_ends_at = null, pair_token_sealed = null, pair_token_hash = null, relay_ws_token_sealed = null,
      relay_ws_token_hash = null
    where id = ${id}`
}

describe('on this machine', async () => {
  const api = await startWith({
    SVC_REGIONS: region({ provider: 'local', public_host: 'relays.example.net' }),
    SVC_RELAY_SRT_PASSPHRASE: 'a.passphrase.of.these.tests',
  })

  test('the list is empty without connections, and has one entry for each, the last used first', async () => {
    const { list, start } = await connected(api)
    expect(await list()).toEqual([])
    for (const name of ['phone', 'backpack']) await start(name)
    expect(await list()).toMatchObject([
      { name: 'backpack', detail: 'Frankfurt, relay is starting', online: false, bitrate_kbps: 0 },
      { name: 'phone', detail: 'Frankfurt, relay is starting', online: false, bitrate_kbps: 0 },
    ])
  })

  test('an entry is online while a stream comes in, with its whole bitrate', async () => {
    const { only, start } = await connected(api)
    const id = await start()
    await writeActive(api.sql, id)
    expect(await only()).toMatchObject({ detail: 'Frankfurt, relay waits for the stream', online: false })
    await writeIngest(api, id, 5200)
    expect(await only()).toMatchObject({ detail: 'Frankfurt, live', online: true, bitrate_kbps: 5200 })
    await writeEnded(api, id)
    expect(await only()).toMatchObject({ detail: 'Frankfurt, relay off', online: false, bitrate_kbps: 0 })
  })

  test('id and address stay the same over sessions, and without a relay', async () => {
    const { user, only, start, resolve, keys } = await connected(api)
    const id = await start()
    expect((await resolve((await only()).id)).status).toBe(404)
    await writeActive(api.sql, id)
    await api.sql`update relay_sessions set relay_host = 'relays.example.net', play_port = 23456 where id = ${id}`
    await api.sql`update connections set srtla_port = 1, publish_port = 2, play_port = 23456, stats_port = 3 where user_id = ${user.userId}`
    const first = await only()
    const { body, headers } = await resolve(first.id)
    expect(body).toEqual({ url: expect.any(String) })
    expect(headers.get('cache-control')).toBe('no-store')
    const url = new URL(body.url ?? '')
    expect([url.protocol, url.host]).toEqual(['srt:', 'relays.example.net:23456'])
    expect(url.search).toMatch(/^\?streamid=play\/live\/[\w-]{22}&passphrase=a\.passphrase\.of\.these\.tests$/)
    await writeEnded(api, id)
    expect((await only()).id).toBe(first.id)
    expect((await resolve(first.id)).body.url).toBe(body.url)
    await start()
    expect((await only()).id).toBe(first.id)
    expect((await resolve(first.id)).body.url).toBe(body.url)
    expect(await keys()).toHaveLength(1)
  })

  test('sign-ins of the app share one key, which no other app and no publisher can use', async () => {
    const { user, only, start, resolve, keys } = await connected(api)
    await writeActive(api.sql, await start())
    const { url } = (await resolve((await only()).id)).body
    const second = await connectApp(api, user.bearer)
    const answer = await api.get<{ ingests: Ingest[] }>('/ingests', { bearer: second.access_token })
    const id = answer.body.ingests[0]?.id
    const again = await api.get<{ url: string }>(`/ingests/${id}/url`, { bearer: second.access_token })
    expect(again.body.url).toBe(url)
    expect(await keys()).toHaveLength(1)
    const streamToken = (await api.get<{ user: { stream_token: string } }>('/auth/session', { bearer: user.bearer }))
      .body.user
    expect(url).not.toContain(streamToken.stream_token)
  })

  test('a new key after a disconnection changes the id, since OBS keeps the former address', async () => {
    const { user, only, start, resolve } = await connected(api)
    await writeActive(api.sql, await start())
    const before = await only()
    expect((await resolve(before.id)).status).toBe(200)
    await api.delete(`/auth/apps/${sourceApp}`, { bearer: user.bearer })
    const { access_token } = await connectApp(api, user.bearer)
    const after = await api.get<{ ingests: Ingest[] }>('/ingests', { bearer: access_token })
    expect(after.body.ingests[0]?.id).not.toBe(before.id)
    expect((await api.get(`/ingests/${before.id}/url`, { bearer: access_token })).status).toBe(404)
  })

  test('twenty first requests at the same time make one key', async () => {
    const { bearer, keys } = await connected(api)
    const answers = await Promise.all(Array.from({ length: 20 }, () => api.get('/ingests', { bearer })))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(await keys()).toHaveLength(1)
  })

  test('an unknown id, and that of another account, are 404 with a flat error', async () => {
    const [own, other] = [await connected(api), await connected(api)]
    await writeActive(api.sql, await own.start())
    const { id } = await own.only()
    for (const answer of [await other.resolve(id), await own.resolve('unknown'), await own.resolve('a%20b')]) {
      expect([answer.status, answer.body]).toEqual([404, { error: 'not_found', error_description: expect.any(String) }])
    }
  })

  test('an account without a plan still gets its list', async () => {
    const user = await api.given.user()
    const { access_token } = await connectApp(api, user.bearer)
    expect((await api.get('/ingests', { bearer: access_token })).status).toBe(200)
  })
})

describe('in a cloud without names', async () => {
  const api = await startWith({ SVC_REGIONS: cloud })

  test('the id changes with the address, and there is none without a relay', async () => {
    const { only, start, resolve } = await connected(api)
    const id = await start()
    await writeActive(api.sql, id)
    const first = await only()
    expect((await resolve(first.id)).body.url).toMatch(/^srt:\/\/198\.51\.100\.7:4000\?streamid=play\/live\/[\w-]{22}$/)
    await api.sql`update relay_sessions set relay_host = '2001:db8::7' where id = ${id}`
    const second = await only()
    expect(second.id).not.toBe(first.id)
    expect((await resolve(first.id)).status).toBe(404)
    expect((await resolve(second.id)).body.url).toMatch(/^srt:\/\/\[2001:db8::7\]:4000\?/)
    await writeEnded(api, id)
    for (const stale of [first.id, second.id, (await only()).id]) expect((await resolve(stale)).status).toBe(404)
  })
})

describe('in a cloud with names', async () => {
  const api = await startWith({ SVC_REGIONS: cloud, SVC_RELAY_DOMAIN: 'relays.example.net' })

  test('the address is the name, before the relay runs, while the name server is late, and afterwards', async () => {
    const { user, only, start, resolve } = await connected(api)
    const id = await start()
    const [{ label } = { label: '' }] = await api.sql<{ label: string }[]>`
      select label from connections where user_id = ${user.userId}`
    const first = await only()
    const { url } = (await resolve(first.id)).body
    expect(url).toMatch(new RegExp(`^srt://${label}\\.relays\\.example\\.net:4000\\?`))
    await writeActive(api.sql, id)
    expect((await only()).id).toBe(first.id)
    await writeEnded(api, id)
    expect((await resolve((await only()).id)).body.url).toBe(url)
  })
})
