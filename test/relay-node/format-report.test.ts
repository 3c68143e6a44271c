/** When reports state the format of the stream. */
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { type StreamFormat, showStreamFormat } from '../../domain/relay/stream-format.ts'
import { FormatReport } from '../../relay-node/format-report.ts'
import { report } from '../../relay-node/health-report.ts'
import { refusal, run } from './control-plane.ts'
import { givenControlPlane, noAdmissions, noIngest, secret } from './running.ts'

const formatOf = (height: number): StreamFormat => ({
  video: { codec: 'hevc', profile: 'main', width: 1280, height, frameRate: 30 },
  audio: null,
})

async function givenReports() {
  const plane = await givenControlPlane()
  let found: StreamFormat | undefined
  const sent = {
    apiUrl: plane.url,
    authSecret: secret,
    sessionId: randomUUID(),
    instanceId: 'relay-1',
    intervalSeconds: 10,
    summarizeIngest: () => noIngest,
    admissions: noAdmissions,
    format: new FormatReport(() => found),
    signal: new AbortController().signal,
  }
  return {
    plane,
    has(format: StreamFormat) {
      found = format
    },
    /** @returns what the report stated. */
    async report(more: { readonly isExtra?: boolean; readonly sessionId?: null; readonly isFirst?: true } = {}) {
      await report({ ...sent, ...more })
      return plane.reports.at(-1)?.body.stream_format
    },
  }
}

test('each usual report states the format until one with it is accepted, and again after a change', async () => {
  const { plane, has, report } = await givenReports()
  expect(await report()).toBeUndefined()
  has(formatOf(720))
  plane.answers(refusal(503, 'temporarily_unavailable'))
  expect(await report()).toEqual(showStreamFormat(formatOf(720)))
  plane.answers(run())
  expect(await report()).toEqual(showStreamFormat(formatOf(720)))
  has(formatOf(720))
  expect(await report()).toBeUndefined()
  has(formatOf(1080))
  expect(await report()).toEqual(showStreamFormat(formatOf(1080)))
  expect(await report()).toBeUndefined()
  has(formatOf(720))
  expect(await report()).toEqual(showStreamFormat(formatOf(720)))
})

test('neither an extra report nor that of an unbound relay states a format', async () => {
  const { has, report } = await givenReports()
  has(formatOf(720))
  expect(await report({ isExtra: true })).toBeUndefined()
  expect(await report({ sessionId: null, isFirst: true })).toBeUndefined()
  expect(await report()).toEqual(showStreamFormat(formatOf(720)))
})
