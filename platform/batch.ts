/**
 * Folds questions that arrive while one is being answered into the next one, so that a thousand callers cost a few round
 * trips. Each caller still gets its own, exact answer after it was really written or read.
 */
interface Waiting<Question, Answer> {
  question: Question
  /** When it was asked, in milliseconds of the process's clock. */
  since: number
  resolve: (answer: Answer) => void
  reject: (error: unknown) => void
}

export interface BatchLimits {
  /** Questions in one round at most. */
  readonly sizeMax: number
  /** Rounds under way at once at most. */
  readonly roundsMax: number
  /**
   * A question that has waited longer than this behind a round that failed is rejected instead of asked: while nothing is
   * answered, a caller waits this long and for one round at most.
   */
  readonly waitMillisMax?: number
}

const usualWaitMillisMax = 1000

/** The round before it failed, after a long wait. The code is that of a query which is not answered in time. */
export class BatchTimeoutError extends Error {
  override name = 'BatchTimeoutError'
  readonly code = 'QUERY_TIMEOUT'
}

/**
 * @param ask answers all questions of one round, in their order.
 * @returns a function that asks one question.
 */
export function batch<Question, Answer>(
  ask: (questions: Question[]) => Promise<Answer[]>,
  limits: BatchLimits = { sizeMax: 200, roundsMax: 2 },
): (question: Question) => Promise<Answer> {
  const waiting: Waiting<Question, Answer>[] = []
  let rounds = 0
  let scheduled = false

  const startRounds = () => {
    scheduled = false
    while (waiting.length > 0 && rounds < limits.roundsMax) void runRound(waiting.splice(0, limits.sizeMax))
  }

  const rejectLate = (cause: unknown) => {
    const waitMillisMax = limits.waitMillisMax ?? usualWaitMillisMax
    const inTime = waiting.findIndex(({ since }) => performance.now() - since <= waitMillisMax)
    for (const one of waiting.splice(0, inTime < 0 ? waiting.length : inTime))
      one.reject(new BatchTimeoutError(`not asked within ${waitMillisMax} ms`, { cause }))
  }

  const runRound = async (round: Waiting<Question, Answer>[]) => {
    rounds += 1
    try {
      const answers = await ask(round.map((one) => one.question))
      round.forEach((one, index) => {
        one.resolve(answers[index] as Answer)
      })
    } catch (error) {
      for (const one of round) one.reject(error)
      rejectLate(error)
    } finally {
      rounds -= 1
      startRounds()
    }
  }

  return (question) =>
    new Promise((resolve, reject) => {
      waiting.push({ question, since: performance.now(), resolve, reject })
      if (scheduled) return
      scheduled = true
      setImmediate(startRounds)
    })
}
