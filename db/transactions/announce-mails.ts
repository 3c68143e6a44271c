/** Announces the mails that are on without the owner's doing. */
import type { Sealing } from '../../platform/sealing.ts'
import type { Database } from '../connection.ts'
import { enqueueMessage } from '../notifications/outbox.ts'
import { claimUntoldAccounts } from '../notifications/plan-notices.ts'

/** Each account gets one mail. @param mailTo the mail to an address. */
export const announceMails = (
  sql: Database,
  sealing: Sealing,
  rowsMax: number,
  mailTo: (email: string) => { readonly subject: string },
): Promise<void> =>
  sql.begin(async (tx) => {
    for (const { userId, email } of await claimUntoldAccounts(tx, rowsMax)) {
      const content = mailTo(email)
      await enqueueMessage(tx, sealing, { userId, channel: 'email', kind: content.subject, content })
    }
  })
