/**
 * What a user sees first: `npm start` on an empty folder, the commands that it prints, and Ctrl-C.
 * test/system/start.test.ts has the rest.
 */
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/folders.ts'
import { commandsOf, endAllAfterwards, paste, type SessionReply, Stack, untilRelayState } from '../support/stack.ts'

test('the commands that it prints start, show and stop a relay, and Ctrl-C ends all processes', async () => {
  const dataDir = await temporaryFolder()
  endAllAfterwards(dataDir)
  const stack = await new Stack(dataDir).ready()
  const [signIn = '', start = '', show = '', stop = ''] = stack.commandLines
  const started = JSON.parse(await paste(signIn, start)) as SessionReply
  const { session_id: sessionId, state } = started.session ?? { session_id: '', state: '' }
  expect(state).toBe('provisioning')
  await untilRelayState(stack, sessionId, 'active')
  expect(JSON.parse(await paste(signIn, show))).toMatchObject({ session: { state: 'active' } })
  expect(JSON.parse(await paste(signIn, stop))).toMatchObject({ session: { session_id: sessionId, state: 'stopped' } })
  expect(await stack.end('SIGINT')).toBe(0)
  expect(await commandsOf(dataDir)).toEqual([])
})
