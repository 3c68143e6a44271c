/** The metrics of the outbox, by channel. */
import { expect, test } from 'vitest'
import { enqueueMessage, recordMessageFailure } from '../../../db/notifications/outbox.ts'
import { startApi } from '../../support/api.ts'
import { readMetrics } from '../../support/metrics.ts'

const api = await startApi()
const enqueue = () =>
  enqueueMessage(api.sql, api.services.sealing, { userId: null, channel: 'webhook', kind: 'test', content: {} })

test('messages that wait or were given up are counted by channel', async () => {
  await enqueue()
  await api.sql`update outbox_messages set created_at = now() - interval '100 seconds'`
  const [failed, older] = [await enqueue(), await enqueue()]
  for (const id of [failed, older])
    await recordMessageFailure(api.sql, id, { error: 'gone', isPermanent: true, retryAfterSeconds: 0 })
  await api.sql`update outbox_messages set failed_at = now() - interval '25 hours' where id = ${older}`
  const metric = await readMetrics(api)
  expect(metric('svc_outbox_messages{channel="webhook",state="pending"}')).toBe(1)
  expect(metric('svc_outbox_messages{channel="webhook",state="failed"}')).toBe(1)
  expect(metric('svc_outbox_oldest_pending_seconds{channel="webhook"}')).toBeGreaterThanOrEqual(100)
  expect(metric('svc_outbox_messages{channel="email",state="pending"}')).toBe(0)
  expect(metric('svc_outbox_oldest_pending_seconds{channel="email"}')).toBe(0)
})
