/** The texts of the reference for all operations. `test/api/openapi/` names operations without one. */
import type { OperationTexts } from './operation-text.ts'
import { accountTexts } from './texts/account.ts'
import { notificationTexts } from './texts/notifications.ts'
import { operatorTexts } from './texts/operators.ts'
import { relayTexts } from './texts/relays.ts'
import { signInTexts } from './texts/sign-in.ts'

export const operationTexts: OperationTexts = {
  ...signInTexts,
  ...accountTexts,
  ...relayTexts,
  ...notificationTexts,
  ...operatorTexts,
}
