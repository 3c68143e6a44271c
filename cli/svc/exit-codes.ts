/** What an error means for the exit code and for the text on standard error. */
import { CommanderError } from 'commander'
import { ApiError, ApiUnreachableError, PathParameterError } from '../../client/api-error.ts'
import { ConfigError } from '../../platform/config/environment.ts'

export const exitCodes = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  unreachable: 4,
  notAuthorised: 5,
  waiting: 6,
} as const
export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

export const exitCodeTexts: Readonly<Record<ExitCode, string>> = {
  0: 'done',
  1: 'failed, or refused by the API',
  2: 'wrong command, flag or value, or invalid configuration; nothing was requested',
  3: 'the account, session, event or region does not exist',
  4: 'the API cannot be reached',
  5: 'the operator password is missing or wrong, or the API has no routes for operators',
  6: 'done, except for what waits for the next run of the command',
}

/** An error with its exit code, whose message is shown as it is. */
export class SvcError extends Error {
  override name = 'SvcError'
  constructor(
    readonly exitCode: ExitCode,
    message: string,
  ) {
    super(message)
  }
}

export const usageError = (message: string): SvcError => new SvcError(exitCodes.usage, message)
export const notFoundError = (message: string): SvcError => new SvcError(exitCodes.notFound, message)

/** Statuses of proxies in front of an API that they cannot reach. */
const proxyStatuses = [502, 504]

export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof SvcError) return error.exitCode
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
  if (error instanceof ConfigError || error instanceof PathParameterError) return exitCodes.usage
  if (error instanceof ApiUnreachableError) return exitCodes.unreachable
  if (error instanceof ApiError) return exitCodeOfStatus(error.status)
  return exitCodes.failed
}

function exitCodeOfStatus(status: number): ExitCode {
  if (status === 400) return exitCodes.usage
  if (status === 404) return exitCodes.notFound
  if (status === 401 || status === 403) return exitCodes.notAuthorised
  return proxyStatuses.includes(status) ? exitCodes.unreachable : exitCodes.failed
}

/** The text for standard error, with the way out where there is one. */
export function describeError(error: unknown): string {
  const { message } = error as Error
  if (error instanceof ApiUnreachableError) return `error: ${message}\nIs the service running, and is --api right?`
  if (error instanceof ApiError && error.code === 'invalid_operator')
    return `error: ${message}\nThe password comes from --password-file, SVC_OPERATOR_PASSWORD or the data folder.`
  if (error instanceof ApiError && error.status === 404)
    return `error: The account, session, billing event or region does not exist (${message})`
  if (error instanceof ApiError && error.retryAfterSeconds !== undefined)
    return `error: ${message}\nTry again in ${error.retryAfterSeconds} s.`
  return `error: ${message}`
}
