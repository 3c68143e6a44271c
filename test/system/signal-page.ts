/** Reads the signal path of a relay on the relays page, and measures how long the page takes to name a cause. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

export type End = 'phone' | 'relay' | 'obs'

const pollMillis = 50
/** What a streamer may wait for the page to say what is wrong, or that it is right again. */
const namedSecondsMax = 5

/** Seconds by cause. */
export interface Timing {
  readonly cause: string
  readonly named: number
  readonly cleared: number | undefined
}

export class SignalPage {
  readonly timings: Timing[] = []
  readonly page: Page

  constructor(page: Page) {
    this.page = page
  }

  readonly codeOf = (end: End): Promise<string | null> =>
    this.page
      .locator(`[data-signal="${end}"]`)
      .getAttribute('data-code', { timeout: 1_000 })
      .catch(() => null)

  /** Resolves with the seconds that it took. */
  async until(end: End, codes: readonly string[], secondsMax: number): Promise<number> {
    const startedAt = performance.now()
    for (;;) {
      const code = await this.codeOf(end)
      const seconds = (performance.now() - startedAt) / 1000
      if (code !== null && codes.includes(code)) return seconds
      if (seconds > secondsMax)
        throw new Error(`after ${secondsMax} s the page says ${end}: ${code}, not ${codes.join(' or ')}`)
      await sleep(pollMillis)
    }
  }

  /**
   * Brings a cause about, and takes it back.
   * @param healthy the code before it and after it. Without `takeBack` the cause stays.
   */
  async expectNamed(cause: Cause): Promise<void> {
    const { name, end, code, healthy, bringAbout, takeBack } = cause
    await this.until(end, [healthy], 30)
    await bringAbout()
    const named = await this.until(end, [code], namedSecondsMax * 3)
    let cleared: number | undefined
    if (takeBack) {
      await takeBack()
      cleared = await this.until(end, [healthy], namedSecondsMax * 3)
    }
    this.timings.push({ cause: name, named, cleared })
    process.stdout.write(`${name}: named after ${named.toFixed(1)} s, cleared after ${cleared?.toFixed(1) ?? '-'} s\n`)
    expect(named).toBeLessThan(namedSecondsMax)
    if (cleared !== undefined) expect(cleared).toBeLessThan(namedSecondsMax)
  }
}

interface Cause {
  readonly name: string
  readonly end: End
  readonly code: string
  readonly healthy: string
  readonly bringAbout: () => void | Promise<void>
  readonly takeBack?: () => void | Promise<void>
}
