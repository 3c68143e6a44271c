/**
 * The jobs that notify of what comes at a known time or has lasted for a while, and the one that announces mails that
 * are on without the owner's doing.
 */
import type { Database } from '../../db/connection.ts'
import type { Notify } from '../../db/notifications/settings.ts'
import { announceMails } from '../../db/transactions/announce-mails.ts'
import { notifyOfEndingPlans } from '../../db/transactions/notify-of-ending-plans.ts'
import { notifyOfEndingRelays } from '../../db/transactions/notify-of-ending-relays.ts'
import { notifyOfStreams } from '../../db/transactions/notify-of-streams.ts'
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
  { name: 'notify_streams', everySeconds: 2, runSecondsMax: 300, run: (signal) => notifyStreams(deps, signal) },
  // One batch in a run: mail servers refuse a flood, and mails with links wait behind it.
  { name: 'announce_billing_mails', everySeconds: 60, runSecondsMax: 60, run: () => announceBillingMails(deps) },
]

/** Safe to repeat and to abort. @param batch handles as many rows, and returns their number. */
async function inBatches(batch: (rowsMax: number) => Promise<number>, signal?: AbortSignal): Promise<void> {
  while (!signal?.aborted) if ((await batch(batchRowsMax)) < batchRowsMax) return
}

const notifyEndingPlans = ({ sql, notify }: Deps, signal?: AbortSignal): Promise<void> =>
  inBatches((rowsMax) => notifyOfEndingPlans(sql, rowsMax, notify), signal)

const notifyEndingRelays = ({ sql, notify, config }: Deps, signal?: AbortSignal): Promise<void> =>
  inBatches((rowsMax) => notifyOfEndingRelays(sql, config.relay, rowsMax, notify), signal)

const notifyStreams = ({ sql, notify }: Deps, signal?: AbortSignal): Promise<void> =>
  inBatches((rowsMax) => notifyOfStreams(sql, rowsMax, notify, signal), signal)

/** Does nothing in a service that writes its mails to the log, where no owner reads them: it is sent once. */
async function announceBillingMails({ sql, sealing, config: { siteUrl, mail } }: Deps): Promise<void> {
  if (!mail.smtp && !mail.mailbox) return
  const link = `${siteUrl}/account/notifications`
  const mailTo = (email: string): AnnouncementMail => ({ subject: 'billing_mails_enabled', to: email, link })
  await announceMails(sql, sealing, batchRowsMax, mailTo)
}
