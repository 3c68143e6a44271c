/** Waiting for a program of the service to say that it is well. */
import { setTimeout as sleep } from 'node:timers/promises'

const healthyMillisMax = 120_000

/**
 * Asks the address until it answers 200. Rejects when `giveUp` names a reason, or after two minutes with what was still
 * missing.
 */
export async function untilHealthy(url: string, giveUp: () => string | undefined): Promise<void> {
  const deadline = Date.now() + healthyMillisMax
  let missing = 'no answer'
  while (Date.now() < deadline) {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(5000) })
      const text = await response.text()
      if (response.status === 200) return
      missing = `${response.status} ${text}`
    } catch (error) {
      missing = (error as Error).message
    }
    const reason = giveUp()
    if (reason !== undefined) throw new Error(reason)
    await sleep(100)
  }
  throw new Error(`${url} is not well after ${healthyMillisMax / 1000} s: ${missing}`)
}
