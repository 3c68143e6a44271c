/** Gets the image of a slate from the control plane. */
import { hash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { withSignal } from '../../platform/timeout.ts'
import type { Log } from '../log.ts'

export interface SlateSource {
  /** The API of the control plane, without a path or a trailing slash. */
  readonly apiUrl: string
  readonly authSecret: string
  readonly log: Log
  /** The pause after the first failure, which doubles with each one. A second by default. */
  readonly pauseMillisMin?: number
  readonly requestMillisMax?: number
}

const bytesMax = 4 * 1024 * 1024
const defaultPauseMillisMin = 1_000
const pauseMillisMax = 60_000
const defaultRequestMillisMax = 15_000

/**
 * Repeats failed requests until the signal is aborted. Never rejects.
 * @returns the image with the digest; undefined when the signal was aborted.
 */
export async function fetchSlate(
  digest: string,
  source: SlateSource,
  signal: AbortSignal,
): Promise<Buffer | undefined> {
  const { log, pauseMillisMin = defaultPauseMillisMin } = source
  let lastLogged = ''
  for (let failures = 0; !signal.aborted; failures += 1) {
    const pauseMillis = Math.min(pauseMillisMin * 2 ** Math.max(0, failures - 1), pauseMillisMax)
    if (failures > 0) await sleep(pauseMillis, undefined, { signal }).catch(() => {})
    if (signal.aborted) break
    try {
      return await request(digest, source, signal)
    } catch (error) {
      const { message } = error as Error
      if (!signal.aborted && message !== lastLogged)
        log('warn', 'the image of a slate could not be fetched', { digest, error: message })
      lastLogged = message
    }
  }
  return undefined
}

const request = (
  digest: string,
  { apiUrl, authSecret, requestMillisMax = defaultRequestMillisMax }: SlateSource,
  signal: AbortSignal,
): Promise<Buffer> =>
  withSignal(requestMillisMax, signal, async (limited) => {
    const reply = await fetch(`${apiUrl}/api/v1/relay/slate/${digest}`, {
      headers: { 'x-relay-auth': authSecret },
      // A redirect would send the secret to another host.
      redirect: 'error',
      signal: limited,
    })
    if (reply.status !== 200) {
      await reply.body?.cancel()
      throw new Error(`status ${reply.status}`)
    }
    const image = await read(reply)
    if (hash('sha256', image) !== digest) throw new Error('the image has another digest')
    return image
  })

async function read({ body }: Response): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    // The loop cancels the rest.
    if (bytes > bytesMax) throw new Error(`the image has more than ${bytesMax} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
