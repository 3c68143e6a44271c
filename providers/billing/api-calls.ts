/**
 * Calls to a billing provider's API: limited in time, with checked responses and errors that contain no response data.
 */
import type { z } from 'zod'
import { BillingProviderError } from './provider.ts'

/** The timeout of one call. */
export const callMillisMax = 10_000

/**
 * Runs `call` with a timeout. Throws {@link BillingProviderError} with a message that `describeError` makes from the
 * library's error: that error may contain a whole response.
 * @param providerName for error messages.
 */
export async function callWithTimeout<Result>(
  providerName: string,
  millisMax: number,
  call: () => Promise<Result>,
  describeError: (error: unknown) => string = () => 'could not be reached',
): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    const error = new BillingProviderError(`${providerName} did not answer within ${millisMax / 1000} s`)
    timer = setTimeout(() => reject(error), millisMax)
  })
  try {
    return await Promise.race([call(), timeout])
  } catch (error) {
    if (error instanceof BillingProviderError) throw error
    throw new BillingProviderError(`${providerName} ${describeError(error)}`)
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Checks a response against its documented shape. Throws {@link BillingProviderError} with the path of the first
 * mismatch.
 */
export function parseResponse<Shape extends z.ZodType>(
  providerName: string,
  shape: Shape,
  response: unknown,
): z.infer<Shape> {
  const parsed = shape.safeParse(response)
  if (parsed.success) return parsed.data
  const path = parsed.error.issues[0]?.path.join('.') ?? ''
  throw new BillingProviderError(`${providerName} did not answer as documented (${path})`)
}
