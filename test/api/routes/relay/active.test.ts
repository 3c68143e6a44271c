/** The list of a user's live sessions. */
import { beforeAll, describe, expect, test } from 'vitest'
import { startService, type TestService } from '../../../support/relays.ts'

/** Without a worker, so that sessions keep the state in which they were accepted. */
let service: TestService
beforeAll(async () => {
  service = await startService({ worker: false })
})

describe('the list of live sessions', () => {
  test('is empty for a user without sessions', async () => {
    const user = await service.user()
    expect(await user.active()).toEqual({ session: null, sessions: [] })
    expect(await user.active('obs')).toEqual({ session: null, sessions: [] })
  })

  test('contains all live sessions of the user, the oldest first, and names the session of a connection', async () => {
    const [user, otherUser] = [await service.user(), await service.user()]
    const ids: string[] = []
    for (const connection_id of ['z', 'a', 'm']) ids.push((await user.start({ connection_id })).body.session.session_id)
    const { session, sessions } = await user.active()
    expect(sessions.map(({ session_id }) => session_id)).toEqual(ids)
    expect(session?.session_id).toBe(ids[0])
    expect((await user.active('m')).session?.session_id).toBe(ids[2])
    expect((await user.active('m')).sessions).toHaveLength(3)
    expect((await user.active('unknown')).session).toBeNull()
    expect((await otherUser.active()).sessions).toEqual([])
  })
})
