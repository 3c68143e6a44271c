/**
 * Combines calls that arrive while others are running into one query, so that a thousand callers cost a few round
 * trips. Each caller gets its own result, after its item was really written or read.
 */
interface Waiting<Item, Result> {
  item: Item
  /** In milliseconds of `performance.now()`. */
  since: number
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

export interface BatchLimits {
  /** The most items in one batch. */
  readonly sizeMax: number
  /** The most batches that run at the same time. */
  readonly concurrencyMax: number
  /**
   * When a batch fails, items that have waited longer than this are rejected instead of started. So a caller waits this
   * long and for one more batch at most while every batch fails.
   */
  readonly waitMillisMax?: number
}

const defaultWaitMillisMax = 1000

/** The item waited too long, and the batch before it failed. The code is that of a query that timed out. */
export class BatchTimeoutError extends Error {
  override name = 'BatchTimeoutError'
  readonly code = 'QUERY_TIMEOUT'
}

/**
 * @param run processes the items of one batch and returns their results in the same order.
 * @returns a function that processes one item.
 */
export function batch<Item, Result>(
  run: (items: Item[]) => Promise<Result[]>,
  limits: BatchLimits = { sizeMax: 200, concurrencyMax: 2 },
): (item: Item) => Promise<Result> {
  const waiting: Waiting<Item, Result>[] = []
  let running = 0
  let isScheduled = false

  const startBatches = () => {
    isScheduled = false
    while (waiting.length > 0 && running < limits.concurrencyMax) void runBatch(waiting.splice(0, limits.sizeMax))
  }

  const rejectExpired = (cause: unknown) => {
    const waitMillisMax = limits.waitMillisMax ?? defaultWaitMillisMax
    const firstInTime = waiting.findIndex(({ since }) => performance.now() - since <= waitMillisMax)
    for (const entry of waiting.splice(0, firstInTime < 0 ? waiting.length : firstInTime))
      entry.reject(new BatchTimeoutError(`not started within ${waitMillisMax} ms`, { cause }))
  }

  const runBatch = async (items: Waiting<Item, Result>[]) => {
    running += 1
    try {
      const results = await run(items.map(({ item }) => item))
      items.forEach((entry, index) => {
        entry.resolve(results[index] as Result)
      })
    } catch (error) {
      for (const entry of items) entry.reject(error)
      rejectExpired(error)
    } finally {
      running -= 1
      startBatches()
    }
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, since: performance.now(), resolve, reject })
      if (isScheduled) return
      isScheduled = true
      setImmediate(startBatches)
    })
}
