/** Metrics of the messages to users, read from Postgres. */
import { Gauge, type Registry } from 'prom-client'
import type { Sql } from '../../db/connection.ts'
import { readOutboxFigures } from '../../db/notifications/outbox.ts'
import { messageChannels } from '../../domain/notifications/outbox.ts'

/** Reads the figures. @returns a function that adds them to a registry. */
export async function readOutboxGauges(sql: Sql): Promise<(registry: Registry) => void> {
  const figures = await readOutboxFigures(sql)
  return (registry) => {
    const registers = [registry]
    const messages = new Gauge({
      name: 'svc_outbox_messages',
      help: 'Messages to users that wait for delivery, and those that were given up in the last 24 hours.',
      labelNames: ['channel', 'state'],
      registers,
    })
    const age = new Gauge({
      name: 'svc_outbox_oldest_pending_seconds',
      help: 'Age of the oldest message that waits for delivery.',
      labelNames: ['channel'],
      registers,
    })
    for (const channel of messageChannels) {
      const { pending = 0, failed = 0, oldestSeconds = 0 } = figures.find((figure) => figure.channel === channel) ?? {}
      messages.set({ channel, state: 'pending' }, pending)
      messages.set({ channel, state: 'failed' }, failed)
      age.set({ channel }, oldestSeconds)
    }
  }
}
