/** The texts of the reference for all operations. `test/api/openapi/` names operations without one. */
import type { OperationTexts } from './operation-text.ts'

export const operationTexts: OperationTexts = {}
