/** The first steps of an account in its summary: each is done once the service itself has seen it, and stays done. */
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { startFakeRelayService } from '../../../support/fake-relays.ts'
import { longRelayTimeouts } from '../../../support/subscribers.ts'

const service = await startFakeRelayService({ variables: longRelayTimeouts })
const { api } = service
const { sql } = api

interface Account {
  readonly userId: string
  readonly bearer: string
}

interface FirstSteps {
  readonly address_verified: boolean
  readonly plan: boolean
  readonly relay_started: boolean
  readonly phone_connected: boolean
  readonly player_connected: boolean
}

async function stepsOf({ bearer }: Account): Promise<FirstSteps> {
  return (await api.get<{ first_steps: FirstSteps }>('/auth/session?view=dock', { bearer })).body.first_steps
}

/** The names of those that are done. */
const doneBy = async (account: Account) =>
  Object.entries(await stepsOf(account)).flatMap(([name, isDone]) => (isDone ? [name] : []))

const timesOf = async ({ userId }: Account) =>
  (
    await sql<{ firstVideoAt: Date | null; firstPlayerAt: Date | null }[]>`
    select first_video_at, first_player_at from users where id = ${userId}`
  )[0]

async function startActive() {
  const user = await service.user()
  const { session_id: id } = await service.startActiveRelay(user)
  return { user, id }
}

const video = { publishing: true, bitrate_kbps: 5_000, links: 2, bytes_total: 1_000_000 }
const playedVideo = { ...video, players: 1 }
const started = ['plan', 'relay_started']

describe('the first steps', () => {
  test('of a new account are all open, until its address is verified', async () => {
    const account = await api.given.user()
    expect(await stepsOf(account)).toEqual({
      address_verified: false,
      plan: false,
      relay_started: false,
      phone_connected: false,
      player_connected: false,
    })
    await sql`update users set email_verified_at = now() where id = ${account.userId}`
    expect(await doneBy(account)).toEqual(['address_verified'])
  })

  test('are done one after the other: a plan, a relay, its first video, and the first player', async () => {
    const user = await service.user()
    expect(await doneBy(user)).toEqual(['plan'])
    const { session_id: id } = await service.startActiveRelay(user)
    expect(await doneBy(user)).toEqual(started)
    await service.sendReport(id, { stats: { publishing: false, bitrate_kbps: 0, players: 1 } })
    expect(await doneBy(user)).toEqual(started)
    await service.sendReport(id, { stats: video })
    expect(await doneBy(user)).toEqual([...started, 'phone_connected'])
    await service.sendReport(id, { stats: playedVideo })
    expect(await doneBy(user)).toEqual([...started, 'phone_connected', 'player_connected'])
  })

  test('stay done after the relay has stopped and its session was deleted', async () => {
    const { user, id } = await startActive()
    await service.sendReport(id, { stats: playedVideo })
    await user.stop({ session_id: id, immediate: true })
    await sql`delete from relay_sessions where id = ${id}`
    expect(await doneBy(user)).toEqual([...started, 'phone_connected', 'player_connected'])
  })

  test('are those of the account alone', async () => {
    const [{ id }, { user: other }] = [await startActive(), await startActive()]
    await service.sendReport(id, { stats: playedVideo })
    expect(await doneBy(other)).toEqual(started)
  })

  test('are done by the first report that a relay sends, too', async () => {
    const user = await service.user()
    const { session_id: id } = (await user.start()).body.session
    await expect.poll(async () => (await service.sendReport(id, { stats: playedVideo })).status).toBe(200)
    expect(await doneBy(user)).toEqual([...started, 'phone_connected', 'player_connected'])
  })

  test('are stored once, with the time of the first video and the first player', async () => {
    const { user, id } = await startActive()
    await service.sendReport(id, { stats: playedVideo })
    const times = await timesOf(user)
    expect(times).toEqual({ firstVideoAt: expect.any(Date), firstPlayerAt: expect.any(Date) })
    await service.sendReport(id, { stats: video })
    await service.sendReport(id, { stats: playedVideo })
    const { session_id: second } = await service.startActiveRelay(user, { connection_id: 'second' })
    await service.sendReport(second, { stats: playedVideo })
    expect(await timesOf(user)).toEqual(times)
  })

  test('are known while a transaction holds the row of the account, and do not wait for it', async () => {
    const { user, id } = await startActive()
    await sql.begin(async (tx) => {
      await tx`select from users where id = ${user.userId} for update`
      await service.sendReport(id, { stats: playedVideo })
      expect(await timesOf(user)).toEqual({ firstVideoAt: null, firstPlayerAt: null })
      expect(await doneBy(user)).toEqual([...started, 'phone_connected', 'player_connected'])
    })
    await service.sendReport(id, { stats: video })
    await service.sendReport(id, { stats: playedVideo })
    expect(await timesOf(user)).toEqual({ firstVideoAt: expect.any(Date), firstPlayerAt: expect.any(Date) })
  })

  test('of an account from before they were stored are those that its sessions show', async () => {
    const { user, id } = await startActive()
    const { user: without } = await startActive()
    await service.sendReport(id, { stats: playedVideo })
    await sql`update users set first_video_at = null, first_player_at = null where id = ${user.userId}`
    await sql`update relay_health set player_code = null where session_id = ${id}`
    await sql.unsafe(await readFile(new URL('../../../../db/migrations/0065_first_steps.sql', import.meta.url), 'utf8'))
    const { session } = await user.active()
    const at = new Date(session?.active_at ?? '')
    expect(await timesOf(user)).toEqual({ firstVideoAt: at, firstPlayerAt: at })
    expect(await timesOf(without)).toEqual({ firstVideoAt: null, firstPlayerAt: null })
  })
})
