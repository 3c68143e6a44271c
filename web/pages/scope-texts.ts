/** What connected apps may do, in words. */
import type { AppScope } from '../../domain/identity/apps.ts'

export const scopeTexts: Readonly<Record<AppScope, string>> = {
  'ingests:read': 'See your connections and play their streams',
  'relay:read': 'See your relays, without their addresses and keys',
  'relay:control': 'Start and stop your relays, which uses your relay time',
}
