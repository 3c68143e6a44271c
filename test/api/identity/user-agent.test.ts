/** The browser and the system that a User-Agent header names. */
import { describe, expect, test } from 'vitest'
import { parseUserAgent } from '../../../api/identity/user-agent.ts'

const webkit = 'AppleWebKit/537.36 (KHTML, like Gecko)'
const appleWebkit = 'AppleWebKit/605.1.15 (KHTML, like Gecko)'

describe('a User-Agent header names browser and system', () => {
  test.each([
    ['Chrome', 'Windows', `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webkit} Chrome/142.0.0.0 Safari/537.36`],
    [
      'Edge',
      'Windows',
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webkit} Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0`,
    ],
    [
      'Opera',
      'Windows',
      `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${webkit} Chrome/142.0.0.0 Safari/537.36 OPR/124.0.0.0`,
    ],
    ['Firefox', 'Linux', 'Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0'],
    ['Safari', 'macOS', `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${appleWebkit} Version/18.5 Safari/605.1.15`],
    ['Chrome', 'Chrome OS', `Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) ${webkit} Chrome/142.0.0.0 Safari/537.36`],
    ['Chrome', 'Android', `Mozilla/5.0 (Linux; Android 10; K) ${webkit} Chrome/142.0.0.0 Mobile Safari/537.36`],
    [
      'Samsung Internet',
      'Android',
      `Mozilla/5.0 (Linux; Android 13; SM-S908B) ${webkit} SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36`,
    ],
    [
      'Safari',
      'iOS',
      `Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) ${appleWebkit} Version/18.5 Mobile/15E148 Safari/604.1`,
    ],
    [
      'Chrome',
      'iOS',
      `Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) ${appleWebkit} CriOS/142.0.7204.33 Mobile/15E148 Safari/604.1`,
    ],
    [
      'Safari',
      'iPadOS',
      `Mozilla/5.0 (iPad; CPU OS 18_5 like Mac OS X) ${appleWebkit} Version/18.5 Mobile/15E148 Safari/604.1`,
    ],
  ])('%s on %s', (browser, system, header) => {
    expect(parseUserAgent(header)).toEqual({ browser, system })
  })

  test.each(['', ' ', 'node', 'obs-studio/31.0', '<script>alert(1)</script>', 'My Own Browser/1.0 (a b) c', '\0'])(
    'a text that is not one of a browser, %j, names none',
    (header) => expect(parseUserAgent(header).browser).toBeNull(),
  )

  test('a long header is read in a bounded time', () => {
    const before = process.cpuUsage()
    for (const part of ['a ', '((', 'Chrome/', 'Version/1 Mobile Safari/', '/ ;']) parseUserAgent(part.repeat(100_000))
    // Of the processor, in microseconds. A machine that is busy with something else does not matter.
    expect(process.cpuUsage(before).user).toBeLessThan(5_000_000)
  })
})
