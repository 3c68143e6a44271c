/**
 * Fair queueing for expensive tasks: clients are served round robin, one task each, with a limit on running and on waiting tasks.
 * When the queue is full, a client with many waiting tasks loses one to a client with fewer. So a client is refused only when as
 * many other clients wait as the queue has places, not because one client sends many requests.
 */
export interface FairQueue {
  /** Rejects with {@link QueueFullError}, at once or when the place is given to another client. */
  run<Result>(client: string, work: () => Promise<Result>): Promise<Result>
}

export interface FairQueueBounds {
  readonly runningMax: number
  readonly waitingMax: number
}

export class QueueFullError extends Error {
  override name = 'QueueFullError'
  constructor(readonly waiting: number) {
    super(`the queue is full: ${waiting} tasks are waiting`)
  }
}

interface Task {
  start(): void
  reject(): void
}

export function createFairQueue({ runningMax, waitingMax }: FairQueueBounds): FairQueue {
  /** Waiting tasks by client, in round-robin order. Clients without waiting tasks have no entry. */
  const queues = new Map<string, Task[]>()
  let running = 0
  let waiting = 0

  const startNext = () => {
    const [next] = queues
    if (!next || running >= runningMax) return
    const [client, queue] = next
    // Moves the client to the end of the round-robin order.
    queues.delete(client)
    const task = queue.shift()
    if (queue.length > 0) queues.set(client, queue)
    waiting -= 1
    running += 1
    task?.start()
  }

  /** Rejects the newest task of the longest queue, unless the client's own queue would become as long. */
  const freePlace = (client: string): boolean => {
    if (waiting < waitingMax) return true
    const longest = [...queues.values()].reduce((one, other) => (other.length > one.length ? other : one), [])
    if (longest.length <= (queues.get(client)?.length ?? 0) + 1) return false
    longest.pop()?.reject()
    waiting -= 1
    return true
  }

  return {
    run: (client, work) =>
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
        const task: Task = { start: () => void start(), reject: () => reject(new QueueFullError(waiting)) }
        if (running >= runningMax && !freePlace(client)) return task.reject()
        const queue = queues.get(client) ?? []
        queue.push(task)
        queues.set(client, queue)
        waiting += 1
        startNext()
      }),
  }
}
