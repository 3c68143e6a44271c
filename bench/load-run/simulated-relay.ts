/** A relay without a process: its health reports, with the summary of a stream over several links. */
import type { ApiClient } from './api-client.ts'
import { type Schedule, spread } from './schedule.ts'

export interface SimulatedRelayOptions {
  readonly client: ApiClient
  readonly authSecret: string
  readonly sessionId: string
  readonly instanceId: string
  readonly schedule: Schedule
}

/** Reports at the interval that each reply asks for, until the session ends. */
export async function runSimulatedRelay(options: SimulatedRelayOptions): Promise<void> {
  const { client, authSecret, sessionId, instanceId, schedule } = options
  const startedAtMs = Date.now()
  let bytesTotal = 0
  let publishingMs = 0
  let peakKbps = 0
  let seconds = 10
  while (!schedule.isOver) {
    const bitrateKbps = Math.round(spread(5000))
    bytesTotal += bitrateKbps * 125 * seconds
    publishingMs += seconds * 1000
    peakKbps = Math.max(peakKbps, bitrateKbps)
    const answer = await client.send('health', {
      method: 'POST',
      path: '/relay/health',
      headers: { 'x-relay-auth': authSecret },
      body: {
        session_id: sessionId,
        instance_id: instanceId,
        observed_at: new Date().toISOString(),
        stats: {
          publishing: true,
          bitrate_kbps: bitrateKbps,
          rtt_ms: spread(40),
          loss_pct: spread(0.2),
          links: 3,
          players: 1,
          bytes_total: bytesTotal,
          engine: 'srt-live-transmit',
          publishing_ms_total: Math.round(publishingMs),
          peak_bitrate_kbps: peakKbps,
          started_at_ms: startedAtMs,
        },
      },
    })
    if (answer?.status === 409) return
    if (answer?.status === 200) {
      const reply = JSON.parse(answer.body) as { desired: string; report_in_seconds: number }
      if (reply.desired === 'stop') return
      seconds = reply.report_in_seconds
    }
    await schedule.sleepUntil(performance.now() + seconds * 1000)
  }
}
