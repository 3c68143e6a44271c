/** Waits for a program of the service to be healthy. */
import { setTimeout as sleep } from 'node:timers/promises'

const healthyMillisMax = 120_000

/**
 * Waits until a health check answers 200. Rejects after two minutes with the last answer.
 * @param findFailure returns a reason to reject before that.
 */
export async function waitUntilHealthy(url: string, findFailure: () => string | undefined): Promise<void> {
  const deadline = Date.now() + healthyMillisMax
  let lastAnswer = 'no answer'
  while (Date.now() < deadline) {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(5000) })
      const text = await response.text()
      if (response.status === 200) return
      lastAnswer = `${response.status} ${text}`
    } catch (error) {
      lastAnswer = (error as Error).message
    }
    const failure = findFailure()
    if (failure !== undefined) throw new Error(failure)
    await sleep(100)
  }
  throw new Error(`${url} is not healthy after ${healthyMillisMax / 1000} s: ${lastAnswer}`)
}
