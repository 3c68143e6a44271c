/** The client of EC2, with bounded calls. Credentials come from the environment, as the SDK reads them. */
import type { EC2 } from '@aws-sdk/client-ec2'
import { type Ec2Error, ec2ErrorOf } from './aws-errors.ts'

export interface ConnectionOptions {
  /** EC2's own by default, or AWS_ENDPOINT_URL_EC2. */
  readonly endpoint?: string | undefined
  /** How long one attempt of a call may take. */
  readonly attemptMillisMax?: number | undefined
}

interface CallOptions {
  readonly abortSignal?: AbortSignal
}

/** Rejects with {@link Ec2Error}, or with the reason of the aborted signal. */
export type Ec2Call = <Reply>(
  operation: string,
  send: (ec2: EC2, options: CallOptions) => Promise<Reply>,
  signal?: AbortSignal,
) => Promise<Reply>

const attemptsMax = 3
const defaultAttemptMillisMax = 15_000
const connectionMillisMax = 5_000

export function connectEc2(
  region: string,
  { endpoint, attemptMillisMax = defaultAttemptMillisMax }: ConnectionOptions,
): Ec2Call {
  const connect = async (): Promise<EC2> => {
    // Loading the SDK takes half a second and 90 MB, which a worker without regions of AWS saves.
    const { EC2 } = await import('@aws-sdk/client-ec2')
    return new EC2({
      region,
      ...(endpoint === undefined ? {} : { endpoint }),
      retryMode: 'standard',
      maxAttempts: attemptsMax,
      requestHandler: {
        requestTimeout: attemptMillisMax,
        // Otherwise the SDK logs a warning and goes on waiting.
        throwOnRequestTimeout: true,
        // A reply that stops halfway.
        socketTimeout: attemptMillisMax,
        connectionTimeout: Math.min(connectionMillisMax, attemptMillisMax),
      },
    })
  }
  let client: Promise<EC2> | undefined
  return async (operation, send, signal) => {
    try {
      client ??= connect()
      return await send(await client, signal ? { abortSignal: signal } : {})
    } catch (error) {
      signal?.throwIfAborted()
      throw ec2ErrorOf(operation, error)
    }
  }
}
