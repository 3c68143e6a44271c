/** Questions to a billing provider's API, each within bounds of time, and its failures in a few words of our own. */
import type { z } from 'zod'
import { BillingProviderError } from './provider.ts'

/** How long one call may take, in milliseconds. */
export const callMillisMax = 10_000

/**
 * @param says the provider's name, for errors.
 * @param ask makes the call; what it throws is told as what `failureOf` makes of it, since it may carry whole answers.
 * Throws {@link BillingProviderError}.
 */
export async function within<Answer>(
  says: string,
  millisMax: number,
  ask: () => Promise<Answer>,
  failureOf: (error: unknown) => string = () => 'could not be reached',
): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new BillingProviderError(`${says} took too long to answer`)), millisMax)
  })
  try {
    return await Promise.race([ask(), late])
  } catch (error) {
    if (error instanceof BillingProviderError) throw error
    throw new BillingProviderError(`${says} ${failureOf(error)}`)
  } finally {
    clearTimeout(timer)
  }
}

/** What the provider answered, when it is as documented. Throws {@link BillingProviderError}. */
export function asDocumented<Shape extends z.ZodType>(says: string, shape: Shape, answer: unknown): z.infer<Shape> {
  const read = shape.safeParse(answer)
  if (read.success) return read.data
  const place = read.error.issues[0]?.path.join('.') ?? ''
  throw new BillingProviderError(`${says} did not answer as documented (${place})`)
}
