/**
 * The browser and the operating system that a User-Agent header names. Clients may send any text, so it proves nothing.
 */
import Bowser from 'bowser'

export interface UserAgent {
  /** Such as `Chrome`; null if unknown. */
  readonly browser: string | null
  /** Such as `Windows`; null if unknown. */
  readonly system: string | null
}

/** Limits the time of the patterns. Real headers are shorter. */
const charactersMax = 512

/** Other names are text that a client has chosen. */
const knownBrowsers: ReadonlySet<string> = new Set(Object.values(Bowser.BROWSER_MAP))

const browserNames: Readonly<Record<string, string>> = {
  'Microsoft Edge': 'Edge',
  'Samsung Internet for Android': 'Samsung Internet',
}

export function parseUserAgent(header: string): UserAgent {
  const text = header.slice(0, charactersMax)
  if (text.trim() === '') return { browser: null, system: null }
  const parser = Bowser.getParser(text)
  const browser = parser.getBrowserName()
  return {
    browser: knownBrowsers.has(browser) ? (browserNames[browser] ?? browser) : null,
    system: systemName(parser.getOSName(), parser.getPlatformType()) || null,
  }
}

/** Older iPads call their system iOS. Newer ones send the header of a Mac. */
const systemName = (name: string, platform: string): string =>
  name === 'iOS' && platform === 'tablet' ? 'iPadOS' : name
