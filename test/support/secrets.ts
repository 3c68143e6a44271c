/** What every process of the control plane needs, for tests that start one with variables of their own. */
import { randomBytes } from 'node:crypto'

const base64 = (bytes: number): string => randomBytes(bytes).toString('base64')

/** New ones at each call. */
export const randomSecrets = () => ({
  SVC_JWT_SECRET: base64(48),
  SVC_RELAY_AUTH_SECRET: base64(48),
  OAUTH_ENCRYPTION_KEY: base64(32),
  SVC_BILLING_WEBHOOK_SECRET: `whsec_${base64(32)}`,
})
