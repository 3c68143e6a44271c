/**
 * Fair queueing for expensive tasks: clients are served round robin, one task each, with a limit on running and on
 * waiting tasks. When the queue is full, a client with many waiting tasks loses one to a client with fewer. So a client
 * is refused only when as many other clients wait as the queue has places, not because one client sends many requests.
 * A waiting task leaves the queue when its client's connection closes, and when it has waited for so long that its
 * client would soon give up.
 */
import type { Socket } from 'node:net'

export interface FairQueue {
  /** Rejects with {@link NotStartedError}. A task that runs is never interrupted. */
  run<Result>(client: QueueClient, work: () => Promise<Result>): Promise<Result>
}

export interface QueueClient {
  readonly name: string
  /** The connection that the result of the task is sent to. */
  readonly connection: Pick<Socket, 'destroyed' | 'once' | 'off'>
}

export interface FairQueueBounds {
  readonly runningMax: number
  readonly waitingMax: number
  /** Of one task. */
  readonly waitSecondsMax: number
}

/**
 * - `queue_full`: at once, or when the place is given to another client
 * - `connection_closed`: the client waits no longer
 * - `waited_too_long`: `waitSecondsMax` has passed
 */
export type NotStartedReason = 'queue_full' | 'connection_closed' | 'waited_too_long'

export class NotStartedError extends Error {
  override name = 'NotStartedError'
  constructor(
    readonly reason: NotStartedReason,
    readonly waiting: number,
  ) {
    super(`the task was not started (${reason}): ${waiting} tasks are waiting`)
  }
}

interface Task {
  start(): void
  reject(reason: NotStartedReason): void
}

export function createFairQueue({ runningMax, waitingMax, waitSecondsMax }: FairQueueBounds): FairQueue {
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
    const longest = [...queues.values()].reduce((a, b) => (b.length > a.length ? b : a), [])
    if (longest.length <= (queues.get(client)?.length ?? 0) + 1) return false
    const task = longest.pop()
    waiting -= 1
    task?.reject('queue_full')
    return true
  }

  const add = (client: string, task: Task) => {
    const queue = queues.get(client) ?? []
    queue.push(task)
    queues.set(client, queue)
    waiting += 1
  }

  /** @param task that waits. The others keep their order. */
  const remove = (client: string, task: Task) => {
    const queue = queues.get(client) ?? []
    queue.splice(queue.indexOf(task), 1)
    if (queue.length === 0) queues.delete(client)
    waiting -= 1
  }

  return {
    run: ({ name, connection }, work) =>
      new Promise((resolve, reject) => {
        const start = async () => {
          endWait()
          try {
            resolve(await work())
          } catch (error) {
            reject(error)
          }
          running -= 1
          startNext()
        }
        const task: Task = {
          start: () => void start(),
          reject: (reason) => {
            endWait()
            reject(new NotStartedError(reason, waiting))
          },
        }
        const leave = (reason: NotStartedReason) => {
          remove(name, task)
          task.reject(reason)
        }
        const onClose = () => leave('connection_closed')
        let timeout: NodeJS.Timeout | undefined
        const endWait = () => {
          clearTimeout(timeout)
          connection.off('close', onClose)
        }
        if (connection.destroyed) return task.reject('connection_closed')
        if (running >= runningMax && !freePlace(name)) return task.reject('queue_full')
        timeout = setTimeout(() => leave('waited_too_long'), waitSecondsMax * 1000)
        connection.once('close', onClose)
        add(name, task)
        startNext()
      }),
  }
}
