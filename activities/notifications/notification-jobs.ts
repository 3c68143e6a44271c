/** The jobs that notify of what comes at a known time, and the one that announces mails that are on without the owner's doing. */
import type { Database, Sql } from '../../db/connection.ts'
import { enqueueMessage } from '../../db/notifications/outbox.ts'
import { claimEndingPlans, claimUntoldAccounts } from '../../db/notifications/plan-notices.ts'
import { claimEndingSessions } from '../../db/notifications/relay-notices.ts'
import type { Notify } from '../../db/notifications/settings.ts'
import { planEndingHours } from '../../domain/notifications/kinds.ts'
import { endingSoonSeconds, longestSeconds } from '../../domain/relay/session.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Sealing } from '../../platform/sealing.ts'
import type { AnnouncementMail } from '../../providers/mail/mail.ts'
import type { Job } from '../worker/jobs.ts'

interface Deps {
  readonly config: Pick<Config, 'siteUrl'> & {
    readonly mail: Pick<Config['mail'], 'smtp' | 'mailbox'>
    readonly relay: Pick<Config['relay'], 'maxSessionSeconds'>
  }
  readonly sql: Database
  readonly sealing: Sealing
  readonly notify: Notify
}

/** Rows that one transaction marks and enqueues mails for. */
const batchRowsMax = 100

export const notificationJobs = (deps: Deps): readonly Job[] => [
  {
    name: 'notify_ending_plans',
    everySeconds: 60,
    runSecondsMax: 300,
    run: (signal) => notifyEndingPlans(deps, signal),
  },
  {
    name: 'notify_ending_relays',
    everySeconds: 60,
    runSecondsMax: 300,
    run: (signal) => notifyEndingRelays(deps, signal),
  },
  // One batch in a run: mail servers refuse a flood, and mails with links wait behind it.
  { name: 'announce_billing_mails', everySeconds: 60, runSecondsMax: 60, run: () => announceBillingMails(deps) },
]

/** Safe to repeat and to abort: a batch is marked in the transaction that enqueues its mails. */
async function inBatches(sql: Database, batch: (tx: Sql) => Promise<number>, signal?: AbortSignal): Promise<void> {
  while (!signal?.aborted) if ((await sql.begin(batch)) < batchRowsMax) return
}

const notifyEndingPlans = ({ sql, notify }: Deps, signal?: AbortSignal): Promise<void> =>
  inBatches(
    sql,
    async (tx) => {
      const plans = await claimEndingPlans(tx, planEndingHours, batchRowsMax)
      for (const { userId, endsAt, now } of plans)
        await notify(tx, userId, {
          kind: 'plan_ending',
          timestamp: now.toISOString(),
          data: { ends_at: endsAt.toISOString() },
        })
      return plans.length
    },
    signal,
  )

function notifyEndingRelays({ sql, notify, config }: Deps, signal?: AbortSignal): Promise<void> {
  const { maxSessionSeconds } = config.relay
  const at = (createdAt: Date, seconds: number) => new Date(createdAt.getTime() + seconds * 1000).toISOString()
  return inBatches(
    sql,
    async (tx) => {
      const sessions = await claimEndingSessions(tx, endingSoonSeconds(maxSessionSeconds), batchRowsMax)
      for (const { id, userId, connectionId, region, createdAt, now } of sessions)
        await notify(tx, userId, {
          kind: 'relay_ending_soon',
          timestamp: now.toISOString(),
          data: {
            ...{ session_id: id, connection_id: connectionId, region },
            idle_ends_at: at(createdAt, maxSessionSeconds),
            ends_at: at(createdAt, longestSeconds(maxSessionSeconds)),
          },
        })
      return sessions.length
    },
    signal,
  )
}

/** Does nothing in a service that writes its mails to the log, where no owner reads them: it is sent once. */
async function announceBillingMails({ sql, sealing, config: { siteUrl, mail } }: Deps): Promise<void> {
  if (!mail.smtp && !mail.mailbox) return
  const link = `${siteUrl}/account/notifications`
  await sql.begin(async (tx) => {
    for (const { userId, email } of await claimUntoldAccounts(tx, batchRowsMax)) {
      const content: AnnouncementMail = { subject: 'billing_mails_enabled', to: email, link }
      await enqueueMessage(tx, sealing, { userId, channel: 'email', kind: content.subject, content })
    }
  })
}
