/** How long data is kept, in days. The rules are on one page: `db/operations/retention.ts`. */
import type { Values } from './variables.ts'

export const retentionConfig = (v: Values) => ({
  sessionDays: v.SVC_RETENTION_SESSION_DAYS,
  recordDays: v.SVC_RETENTION_RECORD_DAYS,
  instanceDays: v.SVC_RETENTION_INSTANCE_DAYS,
  auditDays: v.SVC_RETENTION_AUDIT_DAYS,
  signInDays: v.SVC_RETENTION_SIGN_IN_DAYS,
  messageDays: v.SVC_RETENTION_MESSAGE_DAYS,
  billingBodyDays: v.SVC_RETENTION_BILLING_BODY_DAYS,
  billingDays: v.SVC_RETENTION_BILLING_DAYS,
})

export type RetentionConfig = Readonly<ReturnType<typeof retentionConfig>>
