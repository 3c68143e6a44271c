/** Events of a real stream, from its encoder over a real relay to a client of the WebSocket. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { connectSocket } from '../support/relay-sockets.ts'
import { eventually, startService } from '../support/relays.ts'
import { testInRealTime } from './real-time.ts'
import { StreamSource } from './srt-stream.ts'

interface EventMessage {
  readonly type: string
  readonly kind: string
  readonly at: string
  readonly receivedAt: number
}

/** What the source does, and the event that is due after it. */
const steps = [
  { kbps: 400, kind: 'stream_weak', dueMillis: 3_000 },
  { kbps: 4_000, kind: 'stream_recovered', dueMillis: 2_000 },
  { kbps: 0, kind: 'stream_lost', dueMillis: 2_000 },
  { kbps: 4_000, kind: 'stream_recovered', dueMillis: 2_000 },
  { kbps: 0, kind: 'stream_lost', dueMillis: 2_000 },
  { kbps: 400, kind: 'stream_weak', dueMillis: 3_000 },
] as const

testInRealTime('each event of a stream is at its client within a second after it is due', async () => {
  // The api holds the usual reports for seconds, as with the defaults.
  const service = await startService({
    variables: {
      PATH: process.env.PATH ?? '',
      SVC_RELAY_HEALTH_INTERVAL_SECONDS: '10',
      SVC_RELAY_HEALTH_TIMEOUT_SECONDS: '20',
    },
  })
  const { user, session } = await service.activeRelay()
  const client = await connectSocket(service.api.url, { bearer: user.bearer, query: '?events=1' })
  const events: EventMessage[] = []
  client.socket.on('message', (data) => {
    const message = JSON.parse(String(data)) as EventMessage
    if (message.type === 'stream_event') events.push({ ...message, receivedAt: Date.now() })
  })
  const untilEvents = async (count: number): Promise<EventMessage> =>
    (await eventually(
      () => events[count - 1],
      (event) => event !== undefined,
    )) as EventMessage
  const source = new StreamSource(`${session.connect?.srt_url}`, 4_000)
  expect(await untilEvents(1)).toMatchObject({ kind: 'stream_started' })
  const delays: Record<string, number>[] = []
  for (const [index, { kbps, kind, dueMillis }] of steps.entries()) {
    await sleep(4_000)
    expect(events).toHaveLength(index + 1)
    const changedAt = Date.now()
    source.changeRate(kbps)
    const event = await untilEvents(index + 2)
    expect(event.kind).toBe(kind)
    const afterDue = event.receivedAt - changedAt - dueMillis
    delays.push({ [kind]: afterDue, onItsWay: event.receivedAt - Date.parse(event.at) })
    // The first second below the limit may have begun before the change.
    expect(afterDue).toBeGreaterThan(-1_000)
    expect(afterDue).toBeLessThan(1_000)
  }
  process.stdout.write(`milliseconds after they were due, and from the relay's judgement: ${JSON.stringify(delays)}\n`)
  await user.stop({ session_id: session.session_id, immediate: true })
  expect(await untilEvents(steps.length + 2)).toMatchObject({ kind: 'stream_ended' })
  const { body } = await service.api.get<{ stream_events: readonly { kind: string }[] }>(
    `/relay/sessions/${session.session_id}`,
    { bearer: user.bearer },
  )
  expect(body.stream_events.map(({ kind }) => kind)).toEqual([
    'stream_started',
    ...steps.map(({ kind }) => kind),
    'stream_ended',
  ])
})
