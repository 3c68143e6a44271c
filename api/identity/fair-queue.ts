/**
 * Bounds work that takes long, and shares it fairly among the parties that ask: those who wait are served in turns, one of
 * each party, and when the queue is full a party with much waiting gives way to one with less. So a party is kept out only
 * by as many others as the queue has places, and not by one with many requests.
 */
export interface FairQueue {
  /** Rejects with {@link QueueFull} at once, or later when another party needs the place. */
  run<Result>(party: string, work: () => Promise<Result>): Promise<Result>
}

export interface FairQueueBounds {
  readonly runningMax: number
  readonly waitingMax: number
}

export class QueueFull extends Error {
  override name = 'QueueFull'
  constructor(readonly waiting: number) {
    super(`${waiting} are waiting already`)
  }
}

interface Task {
  start(): void
  drop(): void
}

export function createFairQueue({ runningMax, waitingMax }: FairQueueBounds): FairQueue {
  /** In the order of their turns; a party with nothing waiting is not there. */
  const lines = new Map<string, Task[]>()
  let running = 0
  let waiting = 0

  const startNext = () => {
    const [next] = lines
    if (!next || running >= runningMax) return
    const [party, line] = next
    // It goes to the end of the turns with what it has left.
    lines.delete(party)
    const task = line.shift()
    if (line.length > 0) lines.set(party, line)
    waiting -= 1
    running += 1
    task?.start()
  }

  /** Makes a place for a party by dropping the newest task of the longest line, unless its own would be as long. */
  const makePlace = (party: string): boolean => {
    if (waiting < waitingMax) return true
    const longest = [...lines.values()].reduce((one, other) => (other.length > one.length ? other : one), [])
    if (longest.length <= (lines.get(party)?.length ?? 0) + 1) return false
    longest.pop()?.drop()
    waiting -= 1
    return true
  }

  return {
    run: (party, work) =>
      new Promise((resolve, reject) => {
        const start = async () => {
          try {
            resolve(await work())
          } catch (error) {
            reject(error)
          }
          running -= 1
          startNext()
        }
        const task: Task = { start: () => void start(), drop: () => reject(new QueueFull(waiting)) }
        if (running >= runningMax && !makePlace(party)) return task.drop()
        const line = lines.get(party) ?? []
        line.push(task)
        lines.set(party, line)
        waiting += 1
        startNext()
      }),
  }
}
