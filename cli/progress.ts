/** What a person sees while the stack comes up: spinners on a terminal, plain lines elsewhere, each with its time. */
import ora from 'ora'

type Say = (text: string) => void

const elapsed = (since: number): string => `${((performance.now() - since) / 1000).toFixed(1)} s`

export class Progress {
  readonly #began = performance.now()
  #spinner: ReturnType<typeof ora> | undefined
  #ended = false

  /** Some terminals, a container's for instance, say that they are 0 columns wide: nothing can be drawn there. */
  readonly #draws = process.stdout.isTTY === true && process.stdout.columns >= 40

  /**
   * Shows `doing` until `work` has an outcome, then `done` of it. `work` may say how it gets on: the part of its text
   * before a colon is what it does, the part behind it may change often. Nothing is begun after the end.
   */
  async step<T>(doing: string, work: (say: Say) => Promise<T>, done: (outcome: T) => string): Promise<T> {
    if (this.#ended) throw new Error(`too late: ${doing}`)
    const since = performance.now()
    const outcome = await (this.#draws ? this.#spin(doing, since, work) : this.#tell(doing, work))
    this.note(`✔ ${done(outcome)} (${elapsed(since)})`)
    return outcome
  }

  /** One line that stays, above whatever spins at the moment. */
  note(text: string): void {
    this.#spinner?.clear()
    console.log(text)
    this.#spinner?.render()
  }

  get sinceStart(): string {
    return elapsed(this.#began)
  }

  /** Only lines from now on. */
  end(): void {
    this.#ended = true
    this.#clear()
  }

  #clear(): void {
    this.#spinner?.stop()
    this.#spinner = undefined
  }

  async #spin<T>(doing: string, since: number, work: (say: Say) => Promise<T>): Promise<T> {
    let text = doing
    // Standard input stays as it is: a raw terminal would swallow Ctrl-C.
    this.#spinner = ora({ text, stream: process.stdout, discardStdin: false }).start()
    const clock = setInterval(() => {
      if (this.#spinner) this.#spinner.text = `${text} (${elapsed(since)})`
    }, 200)
    try {
      return await work((said) => {
        text = said
      })
    } finally {
      clearInterval(clock)
      this.#clear()
    }
  }

  async #tell<T>(doing: string, work: (say: Say) => Promise<T>): Promise<T> {
    let told = doing
    let toldAt = performance.now()
    this.note(`· ${doing}`)
    return work((said) => {
      const isNews = said.split(': ')[0] !== told.split(': ')[0]
      if (!isNews && performance.now() - toldAt < 30_000) return
      told = said
      toldAt = performance.now()
      this.note(`· ${said}`)
    })
  }
}
