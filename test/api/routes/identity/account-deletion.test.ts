/** Deletion of an account by its owner, which can be taken back during a grace period. */
import { beforeAll, describe, expect, test } from 'vitest'
import { type GivenUser, statusAndCode, type TokenSet } from '../../../support/api.ts'
import { type FakeRelayService, startFakeRelayService } from '../../../support/fake-relays.ts'
import { mailsTo } from '../../../support/mails.ts'
import { eventually } from '../../../support/relays.ts'

let service: FakeRelayService
beforeAll(async () => {
  service = await startFakeRelayService({ variables: { SVC_SITE_URL: 'https://site.example' } })
})

const remove = ({ bearer, password }: GivenUser, parts: object = {}) =>
  service.api.post<{ deletion_due_at: string }>('/auth/account/delete', { password, ...parts }, { bearer })
const restore = ({ bearer }: GivenUser) => service.api.post('/auth/account/restore', undefined, { bearer })
const summaryOf = async ({ bearer }: GivenUser) =>
  (
    await service.api.get<{
      user: { deletion_due_at?: string }
      entitlement: { relay_access_status: string; reason_code: string }
    }>('/auth/session', { bearer })
  ).body
const actionsOf = async ({ bearer }: GivenUser) =>
  (await service.api.get<{ entries: { action: string; detail: object }[] }>('/auth/audit', { bearer })).body.entries

describe('a scheduled deletion', () => {
  test('is due after the grace period, is shown with the account, in the audit and by mail', async () => {
    const user = await service.api.given.user()
    await service.api.sql`update users set email_verified_at = now() where id = ${user.userId}`
    expect((await summaryOf(user)).user.deletion_due_at).toBeUndefined()
    const before = Date.now()
    const { status, body } = await remove(user)
    expect(status).toBe(200)
    expect(Math.abs(Date.parse(body.deletion_due_at) - before - 604_800_000)).toBeLessThan(60_000)
    expect((await summaryOf(user)).user.deletion_due_at).toBe(body.deletion_due_at)
    expect((await actionsOf(user))[0]).toMatchObject({
      action: 'account_deletion_scheduled',
      detail: { due_at: body.deletion_due_at },
    })
    expect(mailsTo(service.api, user.email)).toMatchObject([
      { subject: 'account_deletion_scheduled', link: 'https://site.example/account/security' },
    ])
  })

  test('signs out everywhere else, and the owner can sign in again', async () => {
    const user = await service.api.given.user()
    const other = await service.api.given.signIn(user, 'plugin')
    await remove(user)
    expect((await service.api.get('/auth/sessions', { bearer: other.bearer })).status).toBe(401)
    const { email, password } = user
    const { status, body } = await service.api.post<TokenSet>('/auth/login', { email, password })
    expect(status).toBe(200)
    expect((await summaryOf({ ...user, bearer: body.cp_access_jwt })).user.deletion_due_at).toBeDefined()
  })

  test('ends live relays and refuses new starts, until it is withdrawn', async () => {
    const user = await service.user()
    const { session_id: id } = await service.startActiveRelay(user)
    expect((await remove(user)).status).toBe(200)
    expect(statusAndCode(await user.start())).toEqual([403, 'relay_access_denied'])
    expect((await summaryOf(user)).entitlement).toMatchObject({
      relay_access_status: 'disabled',
      reason_code: 'deletion_scheduled',
    })
    const { transitions } = await eventually(
      () => service.history(id),
      ({ session }) => session.state === 'stopped',
    )
    expect(transitions.at(-1)).toMatchObject({ reason: 'force_disconnected', initiator: 'user' })
    expect((await restore(user)).status).toBe(204)
    expect((await user.start()).status).toBe(201)
  })

  test('can be requested again, which changes neither its time nor the audit', async () => {
    const user = await service.api.given.user()
    await service.api.sql`update users set email_verified_at = now() where id = ${user.userId}`
    const first = await remove(user)
    const second = await remove(user)
    expect(second.body).toEqual(first.body)
    expect((await actionsOf(user)).filter(({ action }) => action === 'account_deletion_scheduled')).toHaveLength(1)
    expect(mailsTo(service.api, user.email)).toHaveLength(1)
  })

  test('requires the password', async () => {
    const user = await service.api.given.user()
    expect(statusAndCode(await remove(user, { password: 'not it at all' }))).toEqual([401, 'invalid_credentials'])
    expect(statusAndCode(await remove(user, { password: undefined }))).toEqual([400, 'invalid_request'])
    expect(statusAndCode(await remove({ ...user, bearer: '' }))).toEqual([401, 'unauthorized'])
    expect((await summaryOf(user)).user.deletion_due_at).toBeUndefined()
  })

  test('of an account without a password requires a recent sign-in', async () => {
    const user = await service.api.given.user()
    const { sql } = service.api
    await sql`update users set password_hash = null where id = ${user.userId}`
    await sql`update auth_sessions set created_at = now() - interval '11 minutes' where id = ${user.authSessionId}`
    expect(statusAndCode(await remove(user))).toEqual([403, 'recent_sign_in_required'])
    await sql`update auth_sessions set created_at = now() - interval '9 minutes' where id = ${user.authSessionId}`
    expect((await remove(user)).status).toBe(200)
  })

  test('concurrent with a start leaves no relay behind', async () => {
    for (let round = 0; round < 4; round += 1) {
      const user = await service.user()
      const [removed, started] = await Promise.all([remove(user), user.start()])
      expect(removed.status).toBe(200)
      expect([201, 403]).toContain(started.status)
      await eventually(
        () => user.active(),
        ({ sessions }) => sessions.length === 0,
      )
    }
  })
})

describe('the withdrawal of a deletion', () => {
  test('keeps the account, and can be repeated', async () => {
    const user = await service.api.given.user()
    await remove(user)
    expect([(await restore(user)).status, (await restore(user)).status]).toEqual([204, 204])
    expect((await summaryOf(user)).user.deletion_due_at).toBeUndefined()
    expect((await actionsOf(user)).filter(({ action }) => action === 'account_restored')).toHaveLength(1)
  })

  test('requires a sign-in', async () => {
    expect((await service.api.post('/auth/account/restore')).status).toBe(401)
  })
})
