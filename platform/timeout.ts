/** Limits of time for work. */

/** Rejects with this message after the time. The work itself goes on, and its result is ignored. */
export async function withTimeout<Value>(
  millis: number,
  message: string,
  work: () => Promise<Value> | Value,
): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(message)), millis)
  })
  try {
    return await Promise.race([work(), timeout])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Gives the work a signal that aborts after the time, with a `TimeoutError`, or when `stopping` does, with its reason.
 * Not `AbortSignal.any`: Node 20 collects the signals that it makes as garbage, and then the work never ends.
 */
export async function withSignal<Value>(
  millis: number,
  stopping: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const controller = new AbortController()
  const stop = () => controller.abort(stopping?.reason)
  const timer = setTimeout(() => controller.abort(new DOMException('The time is over', 'TimeoutError')), millis)
  if (stopping?.aborted) stop()
  else stopping?.addEventListener('abort', stop)
  try {
    return await work(controller.signal)
  } finally {
    clearTimeout(timer)
    stopping?.removeEventListener('abort', stop)
  }
}

export const isTimeout = ({ reason }: AbortSignal): boolean =>
  reason instanceof DOMException && reason.name === 'TimeoutError'
