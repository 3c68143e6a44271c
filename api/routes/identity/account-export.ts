/** The data that is stored about a person, for the person or for an operator who answers a request. */
import { z } from 'zod'
import type { OperationExamples } from '../../http/operation-text.ts'
import { id, timestamp } from '../../http/schemas.ts'
import { exportAccountForOperator, exportOwnAccount } from '../../identity/account-export.ts'
import { route } from '../route.ts'

const AccountExport = z.object({
  user_id: id,
  exported_at: timestamp,
  tables: z
    .record(z.string(), z.array(z.record(z.string(), z.unknown())))
    .describe('The rows of each table with the names of its columns, without secrets. More may be added at any time.'),
})

const exportOwnExamples: OperationExamples = {
  replies: {
    200: {
      account: {
        summary: 'The data of a new account',
        value: {
          user_id: '0b9a6f3e-41c7-4d58-8e2b-7c1d5f90a364',
          exported_at: '2026-08-01T18:00:00.000Z',
          tables: {
            notification_settings: [
              {
                user_id: '0b9a6f3e-41c7-4d58-8e2b-7c1d5f90a364',
                kind: 'payment_failed',
                channel: 'email',
                enabled: false,
                enabled_at: '2026-07-15T09:30:00+00:00',
              },
            ],
          },
        },
      },
    },
  },
}

export const exportOwn = route.user({
  id: 'exportAccount',
  summary: 'Download the data of the account',
  description:
    'Everything that is stored about the account, by table, as a file. Secrets are left out. Requires a sign-in that is at most 10 minutes old.',
  answers: { 200: AccountExport },
  refuses: ['recent_sign_in_required'],
  secret: true,
  examples: exportOwnExamples,
  handle: ({ caller, ip }, services) => exportOwnAccount(services, caller, ip),
})

export const exportForOperator = route.operator({
  id: 'exportUser',
  summary: 'Export the data of an account',
  description:
    'Everything that is stored about an account, by table, to answer a request of its owner. Secrets, notes of operators and their addresses are left out. Audited.',
  params: z.object({ id }),
  answers: { 200: AccountExport },
  refuses: ['not_found'],
  secret: true,
  handle: ({ params, ip }, services) => exportAccountForOperator(services, params.id, ip),
})
