/** Starts of accounts without a plan, where the service offers a free test time. */
import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { drainRegion } from '../../../../db/fleet/regions.ts'
import { statusAndCode } from '../../../support/api.ts'
import { highLimits } from '../../../support/environment.ts'
import { mailsTo } from '../../../support/mails.ts'
import { writeStopped } from '../../../support/relay-rows.ts'
import { useRelayTime } from '../../../support/relay-time.ts'
import { operator, type RelayUser, startService } from '../../../support/relays.ts'
import { ageTrial, entitlementOf, givenNewcomer, givenStranger } from '../../../support/trials.ts'

const regions = JSON.stringify([
  { region: 'main', display_name: 'Main', provider: 'local', capacity: 1000, default: true },
  { region: 'small', display_name: 'Small', provider: 'local', capacity: 5 },
])
const limits = { SVC_RATE_LIMITS: highLimits({ relay_start: 1000 }), SVC_REGIONS: regions }

/** Without a worker, so that sessions keep the state in which they were accepted. */
const service = await startService({ worker: false, variables: { ...limits, SVC_TRIAL_SECONDS: '3600' } })
const { api } = service
const { sql } = api

const off = await startService({ worker: false, variables: limits })

let networks = 0
/** A network of its own, so that tests do not count each other's trials. */
const nextNetwork = () => `198.${18 + Math.floor(networks / 250)}.${networks++ % 250}`

/** Starts from an address of the network. */
const startFrom = ({ bearer }: RelayUser, ip: string, body: object = {}) =>
  api.post<{ session: { session_id: string; region: string } }>('/relay/start', body, {
    bearer,
    headers: { 'Idempotency-Key': randomUUID(), 'X-Forwarded-For': ip },
  })
const start = (user: RelayUser, body: object = {}) => startFrom(user, `${nextNetwork()}.1`, body)

describe('an account without a plan', () => {
  test('starts one relay, and reads what remains of its trial', async () => {
    const user = await givenNewcomer(service)
    const open = { reason_code: 'trial', relay_access_status: 'enabled', max_concurrent_conns: 1 }
    const whole = { state: 'open', remaining_seconds: 3600, total_seconds: 3600 }
    expect(await entitlementOf(api, user)).toMatchObject({ ...open, trial: whole })
    expect((await start(user)).status).toBe(201)
    const second = await start(user, { connection_id: 'second' })
    expect(statusAndCode(second)).toEqual([403, 'relay_limit_reached'])
    expect(await entitlementOf(api, user)).toMatchObject({ ...open, trial: whole })
    const usage = await api.get('/usage/current', { bearer: user.bearer })
    expect(usage.body).toMatchObject({
      included_seconds: 3600,
      remaining_seconds: 3600,
      overage_seconds: 0,
      trial: whole,
    })
  })

  test('starts one relay of its trial for 20 starts at once', async () => {
    const user = await givenNewcomer(service)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => start(user, { connection_id: `c${index}` })),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(await sql`select from trials where user_id = ${user.userId}`).toHaveLength(1)
    expect(await sql`select from relay_sessions where user_id = ${user.userId}`).toHaveLength(1)
  })

  test('goes on with its trial in the next relay, until all time is used', async () => {
    const user = await givenNewcomer(service)
    const { session } = (await start(user)).body
    await writeStopped(sql, session.session_id)
    await ageTrial(api, user, 3700)
    await useRelayTime(sql, user.userId, 3500)
    expect(await entitlementOf(api, user)).toMatchObject({ reason_code: 'trial', trial: { remaining_seconds: 100 } })
    const next = await start(user)
    expect(next.status).toBe(201)
    await writeStopped(sql, next.body.session.session_id)
    await useRelayTime(sql, user.userId, 100)
    const ended = { state: 'ended', remaining_seconds: 0, total_seconds: 3600 }
    expect(await entitlementOf(api, user)).toMatchObject({ reason_code: 'plan_required', trial: ended })
    expect(statusAndCode(await start(user))).toEqual([403, 'trial_ended'])
  })

  test('has used its trial also when the sessions of it were deleted', async () => {
    const user = await givenNewcomer(service)
    const { session } = (await start(user)).body
    await sql`delete from relay_sessions where id = ${session.session_id}`
    await sql`
      insert into usage_days (user_id, day, connection_id, seconds)
      values (${user.userId}, (now() at time zone 'UTC')::date, 'default', 3600)`
    expect(statusAndCode(await start(user))).toEqual([403, 'trial_ended'])
  })

  test('that is disabled by an operator, or going to be deleted, starts none', async () => {
    const user = await givenNewcomer(service)
    await sql`update users set relay_access_enabled = false where id = ${user.userId}`
    expect(statusAndCode(await start(user))).toEqual([403, 'relay_access_denied'])
    expect(await entitlementOf(api, user)).toMatchObject({ reason_code: 'operator_disabled' })
  })

  test('with a plan shows no trial, and starts as many relays as the plan includes', async () => {
    const user = await givenNewcomer(service)
    expect((await start(user)).status).toBe(201)
    await sql`update users set plan_tier = 'paid', plan_status = 'active', addons = 1 where id = ${user.userId}`
    expect((await entitlementOf(api, user)).trial).toBeUndefined()
    expect((await start(user, { connection_id: 'second' })).status).toBe(201)
    expect(statusAndCode(await start(user, { connection_id: 'third' }))).toEqual([403, 'relay_limit_reached'])
  })

  test('is shown to operators with what remains', async () => {
    const user = await givenNewcomer(service)
    const seen = await api.get(`/admin/users/${user.userId}`, { headers: operator })
    expect(seen.body).toMatchObject({ entitlement: { trial: { state: 'open', remaining_seconds: 3600 } } })
  })
})

describe('where the service offers no test time', () => {
  test('an account without a plan starts no relay, and no answer names a trial', async () => {
    const user = await givenNewcomer(off)
    expect(statusAndCode(await user.start())).toEqual([403, 'relay_access_denied'])
    const { body } = await off.api.get('/auth/session', { bearer: user.bearer })
    expect(body).toMatchObject({ entitlement: { reason_code: 'plan_required', relay_access_status: 'disabled' } })
    expect(JSON.stringify(body)).not.toContain('trial')
  })

  test('an address that a provider verified gets no link', async () => {
    const user = await givenStranger(off)
    await off.api.sql`update users set email_verified_at = now() where id = ${user.userId}`
    await off.api.post('/auth/email/resend', undefined, { bearer: user.bearer })
    expect(mailsTo(off.api, user.email)).toEqual([])
  })
})

describe('an address', () => {
  test('that is not verified starts no relay, with the next step in the reply', async () => {
    const user = await givenStranger(service)
    expect(statusAndCode(await start(user))).toEqual([403, 'email_not_verified'])
    const unverified = { state: 'address_unverified', remaining_seconds: 3600 }
    expect(await entitlementOf(api, user)).toMatchObject({ reason_code: 'plan_required', trial: unverified })
  })

  test('that only a provider verified starts none, until its owner has opened a link of ours', async () => {
    const user = await givenStranger(service)
    await sql`update users set email_verified_at = now(), owner_proved_at = now() where id = ${user.userId}`
    expect(statusAndCode(await start(user))).toEqual([403, 'email_not_verified'])
    await api.post('/auth/email/resend', undefined, { bearer: user.bearer })
    const { token } = mailsTo(api, user.email).at(-1) ?? {}
    const preview = await api.post('/auth/email/verify/preview', { token })
    expect(preview.body).toEqual({ already_verified: false })
    expect((await api.post('/auth/email/verify', { token })).status).toBe(204)
    expect((await start(user)).status).toBe(201)
    await api.post('/auth/email/resend', undefined, { bearer: user.bearer })
    expect(mailsTo(api, user.email)).toHaveLength(1)
  })

  test('is proved by the link of a password reset, and by that of a change', async () => {
    const user = await givenStranger(service)
    await api.post('/auth/password/forgot', { email: user.email })
    const reset = mailsTo(api, user.email).at(-1)?.token
    expect((await api.post('/auth/password/reset', { token: reset, password: 'another password' })).status).toBe(204)
    const proved = await sql`select from users where id = ${user.userId} and trial_address_hash is not null`
    expect(proved).toHaveLength(1)

    const changing = await givenStranger(service)
    const email = `${randomUUID()}@example.com`
    const { bearer, password } = changing
    expect((await api.post('/auth/email/change', { email, password }, { bearer })).status).toBeLessThan(300)
    const change = mailsTo(api, email).at(-1)?.token
    expect((await api.post('/auth/email/change/confirm', { token: change })).status).toBeLessThan(300)
    expect((await entitlementOf(api, changing)).trial).toMatchObject({ state: 'open' })
  })
})

describe('a network', () => {
  test.each([
    ['IPv4 /24', (host: number, network: string) => `${network}.${host}`],
    ['IPv6 /48', (host: number, network: string) => `2001:db8:${network.split('.').at(-1)}:${host}::1`],
  ])('begins three trials a day, counted by %s', async (_, addressIn) => {
    const network = nextNetwork()
    const users = []
    for (let count = 0; count < 5; count += 1) users.push(await givenNewcomer(service))
    const answers = await Promise.all(users.map((user, index) => startFrom(user, addressIn(index + 1, network))))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 201, 201, 403, 403])
    const refused = users.filter((_, index) => answers[index]?.status === 403)
    expect(statusAndCode(await startFrom(refused[0] as RelayUser, addressIn(9, network)))).toEqual([
      403,
      'trial_network_limit',
    ])
    // Whose trial has begun goes on with it, and the others have theirs elsewhere.
    const begun = users.find((_, index) => answers[index]?.status === 201) as RelayUser
    expect((await startFrom(begun, addressIn(9, network))).status).toBe(200)
    expect((await start(refused[0] as RelayUser)).status).toBe(201)

    await sql`update trial_networks set starts = array(select start - interval '25 hours' from unnest(starts) start)`
    expect((await startFrom(refused[1] as RelayUser, addressIn(9, network))).status).toBe(201)
  })

  test('is stored as a keyed hash alone, and without the account', async () => {
    const user = await givenNewcomer(service)
    const network = nextNetwork()
    await startFrom(user, `${network}.77`)
    const rows = await sql`select * from trial_networks`
    expect(JSON.stringify(rows)).not.toContain(network)
    expect(Object.keys(rows[0] ?? {}).toSorted()).toEqual(['lastAt', 'networkHash', 'starts'])
  })
})

describe('a region', () => {
  test('keeps the last fifth of its places for accounts with a plan', async () => {
    for (let count = 0; count < 3; count += 1) {
      const paying = await service.user()
      expect((await paying.start({ region: 'small' })).status).toBe(201)
    }
    const [inTime, late] = [await givenNewcomer(service), await givenNewcomer(service)]
    expect((await start(inTime, { region: 'small' })).status).toBe(201)
    expect(statusAndCode(await start(late, { region: 'small' }))).toEqual([503, 'trial_region_busy'])
    expect(await sql`select from trials where user_id = ${late.userId}`).toHaveLength(0)
    expect((await (await service.user()).start({ region: 'small' })).status).toBe(201)
    expect((await start(late, { region: 'auto' })).body.session.region).toBe('main')
  })

  test('that is drained takes no trial', async () => {
    await drainRegion(sql, 'small')
    const user = await givenNewcomer(service)
    expect(statusAndCode(await start(user, { region: 'small' }))).toEqual([503, 'capacity_exhausted'])
  })
})
