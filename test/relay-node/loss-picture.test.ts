/** What players see while no stream arrives, from the control plane to the engine. */
import { expect, onTestFinished, test } from 'vitest'
import type { StreamFormat } from '../../domain/relay/stream-format.ts'
import { admitPlainToken, readAdmission } from '../../relay-node/admission.ts'
import { startDataPlane } from '../../relay-node/data-plane.ts'
import type { Engine, TimelineStats } from '../../relay-node/engine.ts'
import type { LossPicture } from '../../relay-node/loss-picture.ts'

const digest = 'a1'.repeat(32)
const format: StreamFormat = {
  video: { codec: 'h264', profile: 'high', width: 1280, height: 720, frameRate: 30 },
  audio: { codec: 'aac_adts', sampleRate: 48_000, channels: 2 },
}
const sent = {
  revision: 3,
  stream_token: { key: 'A'.repeat(43), hash: 'B'.repeat(43) },
  token_plays: true,
  play_keys: [],
}

test('an admission of the control plane has the mode, the image and the former format of the session', () => {
  const stream_format = {
    video: { codec: 'h264', profile: 'high', width: 1280, height: 720, frame_rate: 30 },
    audio: { codec: 'aac_adts', sample_rate: 48_000, channels: 2 },
  }
  const admission = readAdmission({ ...sent, on_loss: 'slate', slate: digest, stream_format })
  expect(admission?.lossPicture).toEqual({ mode: 'slate', slate: digest, format })
})

test.each([
  ['of a former version', {}],
  ['with an unknown mode', { on_loss: 'dance', slate: null, stream_format: null }],
  ['with values of other types', { on_loss: 1, slate: '../secret', stream_format: { video: 'h264' } }],
])('an admission %s admits as usual, and nothing is shown', (_, fields) => {
  expect(readAdmission({ ...sent, ...fields })).toMatchObject({
    revision: 3,
    lossPicture: { mode: 'hold', slate: null, format: null },
  })
})

async function givenDataPlane(timeline?: () => TimelineStats) {
  const shown: LossPicture[] = []
  const engine: Engine = {
    name: 'srt-live-transmit',
    open: () => Promise.reject(new Error('no caller is admitted')),
    showOnLoss: (picture) => void shown.push(picture),
    streamFormat: () => format,
    ...(timeline ? { timeline } : {}),
    close: async () => {},
  }
  const plane = await startDataPlane({
    hosts: ['127.0.0.1'],
    ports: { srtlaPort: 0, publishPort: 0, playPort: 0 },
    admission: admitPlainToken('Ab12Cd34'),
    capMbps: 48,
    streamWeakKbps: 800,
    statsAddresses: 'masked',
    log: () => {},
    engine,
  })
  onTestFinished(() => plane.close('the test is over'))
  return { plane, shown }
}

test('the engine gets what to show with each admission', async () => {
  const { plane, shown } = await givenDataPlane()
  const lossPicture = { mode: 'slate', slate: digest, format: null } as const
  plane.admit({ ...admitPlainToken('Ab12Cd34'), lossPicture })
  expect(shown).toEqual([{ mode: 'hold', slate: null, format: null }, lossPicture])
  expect(plane.streamFormat()).toEqual(format)
})

test('statistics show the timeline of the engine, and that it is off without one', async () => {
  const timeline = { mode: 'freeze', segments: 2, filled_ms: 1_500 } as const
  expect((await givenDataPlane(() => timeline)).plane.showStats().timeline).toEqual(timeline)
  expect((await givenDataPlane()).plane.showStats().timeline).toEqual({ mode: 'off', segments: 0, filled_ms: 0 })
})
