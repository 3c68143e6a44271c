/**
 * What the package `relay-control-client` exports, built by `build-package.ts`. For programs outside this repository:
 * the folders here import the files themselves.
 */
export {
  ApiError,
  type ApiErrorDetails,
  type ApiResult,
  ApiUnreachableError,
  expectSuccess,
  isApiFailure,
  PathParameterError,
  readErrorBody,
  readRetryAfter,
} from './api-error.ts'
export type { components, operations, paths } from './api-types.ts'
export {
  type ApiClient,
  type ApiClientOptions,
  bearer,
  createApiClient,
  operatorCredentials,
  repeatFor,
} from './client.ts'
export type { Fetch, TimeoutMillis } from './complete-fetch.ts'
export type { Reply } from './reply.ts'
