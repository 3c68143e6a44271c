/** The format of the stream, which reports state until one with it was accepted, and again when it changes. */
import { type ReportedStreamFormat, type StreamFormat, showStreamFormat } from '../domain/relay/stream-format.ts'

export class FormatReport {
  readonly #find: () => StreamFormat | undefined
  /** As text, since each reading may be another object. */
  #accepted: string | undefined

  /** @param find the present format, or the last one; undefined before the first. */
  constructor(find: () => StreamFormat | undefined) {
    this.#find = find
  }

  /** @returns undefined when the control plane has it already. */
  pending(): ReportedStreamFormat | undefined {
    const format = this.#find()
    const shown = format && showStreamFormat(format)
    return shown === undefined || JSON.stringify(shown) === this.#accepted ? undefined : shown
  }

  /** A report with this format was accepted. */
  accept(shown: ReportedStreamFormat): void {
    this.#accepted = JSON.stringify(shown)
  }
}
