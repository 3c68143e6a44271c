/** The progress of a start in the terminal: a spinner where possible, plain lines elsewhere, each with its duration. */
import ora from 'ora'

/**
 * Changes the text of a running step. The part after a colon may change often, and is not shown as a line of its own.
 */
type Update = (text: string) => void

const plainUpdateMillis = 30_000

const secondsSince = (since: number): string => `${((performance.now() - since) / 1000).toFixed(1)} s`

export class Progress {
  readonly #startedAt = performance.now()
  #spinner: ReturnType<typeof ora> | undefined
  #hasEnded = false

  /** Some terminals, for example of containers, report a width of 0 columns: nothing can be drawn there. */
  readonly #canDraw = process.stdout.isTTY === true && process.stdout.columns >= 40

  /** Shows a text during `work`, and another one with the duration after it. Rejects when progress has ended. */
  async step<T>(text: string, work: (update: Update) => Promise<T>, doneText: (result: T) => string): Promise<T> {
    if (this.#hasEnded) throw new Error(`too late: ${text}`)
    const since = performance.now()
    const result = await (this.#canDraw ? this.#spin(text, since, work) : this.#printUpdates(text, work))
    this.print(`✔ ${doneText(result)} (${secondsSince(since)})`)
    return result
  }

  /** Prints a line above the spinner. */
  print(text: string): void {
    this.#spinner?.clear()
    console.log(text)
    this.#spinner?.render()
  }

  get sinceStart(): string {
    return secondsSince(this.#startedAt)
  }

  /** Removes the spinner. From then on only lines are printed. */
  end(): void {
    this.#hasEnded = true
    this.#removeSpinner()
  }

  #removeSpinner(): void {
    this.#spinner?.stop()
    this.#spinner = undefined
  }

  async #spin<T>(firstText: string, since: number, work: (update: Update) => Promise<T>): Promise<T> {
    let text = firstText
    // Standard input stays unchanged: a terminal in raw mode would swallow Ctrl-C.
    this.#spinner = ora({ text, stream: process.stdout, discardStdin: false }).start()
    const clock = setInterval(() => {
      if (this.#spinner) this.#spinner.text = `${text} (${secondsSince(since)})`
    }, 200)
    try {
      return await work((update) => {
        text = update
      })
    } finally {
      clearInterval(clock)
      this.#removeSpinner()
    }
  }

  async #printUpdates<T>(firstText: string, work: (update: Update) => Promise<T>): Promise<T> {
    let printed = firstText
    let printedAt = performance.now()
    this.print(`· ${firstText}`)
    return work((update) => {
      const isSameStep = update.split(': ')[0] === printed.split(': ')[0]
      if (isSameStep && performance.now() - printedAt < plainUpdateMillis) return
      printed = update
      printedAt = performance.now()
      this.print(`· ${update}`)
    })
  }
}
