/**
 * Folds questions that arrive while one is being answered into the next one, so that a thousand callers cost a few round
 * trips. Each caller still gets its own, exact answer after it was really written or read.
 */
interface Waiting<Question, Answer> {
  question: Question
  resolve: (answer: Answer) => void
  reject: (error: unknown) => void
}

export interface BatchLimits {
  /** Questions in one round at most. */
  readonly sizeMax: number
  /** Rounds under way at once at most. */
  readonly roundsMax: number
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

  const runRound = async (round: Waiting<Question, Answer>[]) => {
    rounds += 1
    try {
      const answers = await ask(round.map((one) => one.question))
      round.forEach((one, index) => {
        one.resolve(answers[index] as Answer)
      })
    } catch (error) {
      for (const one of round) one.reject(error)
    } finally {
      rounds -= 1
      startRounds()
    }
  }

  return (question) =>
    new Promise((resolve, reject) => {
      waiting.push({ question, resolve, reject })
      if (scheduled) return
      scheduled = true
      setImmediate(startRounds)
    })
}
