/** The data that is stored about a person, for the person or for an operator who answers a request. */
import { z } from 'zod'
import { route } from '../../http/route.ts'
import { id, timestamp } from '../../http/schemas.ts'
import { exportAccountForOperator, exportOwnAccount } from '../../identity/account-export.ts'

const AccountExport = z.object({
  user_id: id,
  exported_at: timestamp,
  tables: z
    .record(z.string(), z.array(z.record(z.string(), z.unknown())))
    .describe('The rows of each table with the names of its columns, without secrets. More may be added at any time.'),
})

export const exportOwn = route.user({
  summary: 'Download the data of the account',
  answers: { 200: AccountExport },
  refuses: ['recent_sign_in_required'],
  secret: true,
  handle: ({ caller, ip }, services) => exportOwnAccount(services, caller, ip),
})

export const exportForOperator = route.operator({
  summary: 'Export the data of an account',
  params: z.object({ id }),
  answers: { 200: AccountExport },
  refuses: ['not_found'],
  secret: true,
  handle: ({ params, ip }, services) => exportAccountForOperator(services, params.id, ip),
})
