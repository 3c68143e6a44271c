/**
 * Where the lines of a process's log go. Writing never blocks and never ends the process: lines wait in memory while they
 * can't be written, as on a full disk or into a pipe that is not read. Beyond a limit they are dropped and counted, and a
 * line says how many once there is room again.
 */
import { write, writeSync } from 'node:fs'

const waitingCharactersMax = 1024 * 1024
const retryMillis = 250
/** A write that takes longer has met a reader that does not read: the process ends without what waits behind it. */
const stuckMillis = 1000

export class LogDestination {
  #waiting: string[] = []
  #waitingCharacters = 0
  #dropped = 0
  /** What is being written, or was written in part. */
  #current: Buffer | undefined
  #writingSince: number | undefined
  #retry: NodeJS.Timeout | undefined
  #isScheduled = false

  constructor(
    private readonly fd: number,
    /** The line that says how many lines were dropped. */
    private readonly dropNote: (lines: number) => string,
  ) {
    if (destinations.size === 0)
      process.once('exit', () => {
        for (const one of destinations) one.#flush()
      })
    destinations.add(this)
  }

  /** @param line with its line break. */
  write(line: string): void {
    if (this.#waitingCharacters + line.length > waitingCharactersMax) {
      this.#dropped += 1
      return
    }
    this.#noteDropped()
    this.#push(line)
    if (this.#isScheduled) return
    this.#isScheduled = true
    // Together with what is logged meanwhile; and a process that logs and ends at once has nothing half written.
    setImmediate(() => {
      this.#isScheduled = false
      this.#writeNext()
    })
  }

  #push(line: string): void {
    this.#waiting.push(line)
    this.#waitingCharacters += line.length
  }

  #noteDropped(): void {
    if (this.#dropped === 0) return
    this.#push(this.dropNote(this.#dropped))
    this.#dropped = 0
  }

  #writeNext(): void {
    if (this.#writingSince !== undefined || this.#retry !== undefined) return
    const bytes = this.#take()
    if (bytes.length === 0) return
    this.#writingSince = performance.now()
    write(this.fd, bytes, (error, written) => {
      this.#writingSince = undefined
      if (error) return this.#writeLater()
      this.#current = bytes.subarray(written)
      if (this.#current.length === 0 && this.#waiting.length === 0) this.#noteDropped()
      this.#writeNext()
    })
  }

  #take(): Buffer {
    if (!this.#current?.length) {
      this.#current = Buffer.from(this.#waiting.join(''))
      this.#waiting = []
      this.#waitingCharacters = 0
    }
    return this.#current
  }

  #writeLater(): void {
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      this.#writeNext()
    }, retryMillis).unref()
  }

  /** At the end of the process, as far as that goes at once. */
  #flush(): void {
    if (this.#writingSince !== undefined) {
      if (performance.now() - this.#writingSince > stuckMillis) return
      this.#current = undefined
    }
    this.#noteDropped()
    try {
      for (let bytes = this.#take(); bytes.length > 0; bytes = this.#take())
        this.#current = bytes.subarray(writeSync(this.fd, bytes))
    } catch {
      // Still no room: these lines are lost.
    }
  }
}

const destinations = new Set<LogDestination>()
