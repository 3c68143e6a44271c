/** What pages need beside the client of the API. */
import { type ApiResult, readErrorBody } from '../client/api-error.ts'

/** Code and message of an error reply. */
export const readApiError = (result: Pick<ApiResult, 'error'>): { code: string; message: string } => ({
  code: 'internal_error',
  message: 'Something went wrong on our side.',
  ...readErrorBody(result),
})

/** A value that a visitor chose, for a request that has a fixed set of values: the API refuses any other. */
export const unchecked = <Value extends string>(value: string): Value => value as Value
