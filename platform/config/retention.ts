/** How long data is kept, in days. The rules are on one page: `db/operations/retention.ts`. */
import type { Values } from './variables.ts'

export const retentionConfig = (v: Values) => ({
  /** Ended relay sessions with their transitions and the totals of their reports. */
  sessionDays: v.SVC_RETENTION_SESSION_DAYS,
  /** Instances that are gone. */
  instanceDays: v.SVC_RETENTION_INSTANCE_DAYS,
  auditDays: v.SVC_RETENTION_AUDIT_DAYS,
  /** Sign-ins that have ended. */
  signInDays: v.SVC_RETENTION_SIGN_IN_DAYS,
  /** Messages to users that were delivered or given up. */
  messageDays: v.SVC_RETENTION_MESSAGE_DAYS,
  /** Bodies of billing webhooks that were applied or ignored. */
  billingBodyDays: v.SVC_RETENTION_BILLING_BODY_DAYS,
  /** Billing events of accounts that do not exist any more. */
  billingDays: v.SVC_RETENTION_BILLING_DAYS,
})

export type RetentionConfig = Readonly<ReturnType<typeof retentionConfig>>
