/**
 * Writes the log lines of a process. Writing never blocks and never ends the process: lines wait in memory while they
 * cannot be written, as on a full disk or to a pipe without a reader. Beyond a limit they are dropped, and a line
 * reports how many once writing is possible again.
 */
import { write, writeSync } from 'node:fs'

const bufferedCharactersMax = 1024 * 1024
const retryMillis = 250
/** The reader of a pipe is considered stuck after that time, and the process ends without the lines that are left. */
const stuckMillis = 1000

export class LogDestination {
  #lines: string[] = []
  #bufferedCharacters = 0
  #dropped = 0
  /** The bytes that are being written, or the rest after a partial write. */
  #current: Buffer | undefined
  #writingSince: number | undefined
  #retry: NodeJS.Timeout | undefined
  #isScheduled = false

  constructor(
    private readonly fd: number,
    /** Formats the line that reports the number of dropped lines. */
    private readonly formatDropped: (lines: number) => string,
  ) {
    if (destinations.size === 0)
      process.once('exit', () => {
        for (const destination of destinations) destination.#flush()
      })
    destinations.add(this)
  }

  /** @param line including its line break. */
  write(line: string): void {
    if (this.#bufferedCharacters + line.length > bufferedCharactersMax) {
      this.#dropped += 1
      return
    }
    this.#reportDropped()
    this.#push(line)
    if (this.#isScheduled) return
    this.#isScheduled = true
    // Combines the lines of one turn of the event loop. A process that logs and exits at once has no write in progress
    // then.
    setImmediate(() => {
      this.#isScheduled = false
      this.#writeNext()
    })
  }

  #push(line: string): void {
    this.#lines.push(line)
    this.#bufferedCharacters += line.length
  }

  #reportDropped(): void {
    if (this.#dropped === 0) return
    this.#push(this.formatDropped(this.#dropped))
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
      if (this.#current.length === 0 && this.#lines.length === 0) this.#reportDropped()
      this.#writeNext()
    })
  }

  #take(): Buffer {
    if (!this.#current?.length) {
      this.#current = Buffer.from(this.#lines.join(''))
      this.#lines = []
      this.#bufferedCharacters = 0
    }
    return this.#current
  }

  #writeLater(): void {
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      this.#writeNext()
    }, retryMillis).unref()
  }

  /** Writes as much as possible synchronously when the process exits. */
  #flush(): void {
    if (this.#writingSince !== undefined) {
      if (performance.now() - this.#writingSince > stuckMillis) return
      this.#current = undefined
    }
    this.#reportDropped()
    try {
      for (let bytes = this.#take(); bytes.length > 0; bytes = this.#take())
        this.#current = bytes.subarray(writeSync(this.fd, bytes))
    } catch {
      // Writing is still not possible: these lines are lost.
    }
  }
}

const destinations = new Set<LogDestination>()
