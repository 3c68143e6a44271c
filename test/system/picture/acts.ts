/** What the publishers of a recording do: a player has one codec of video and one of audio. */
import { createRandom, type Random } from '../../support/random.ts'
import type { Encoding } from './encodings.ts'
import type { Act } from './scene.ts'

export interface Play {
  readonly name: string
  readonly acts: readonly Act[]
}

const small: Encoding = {
  video: 'h264',
  audio: 'aac',
  size: '640x360',
  frameRate: 30,
  bFrames: 0,
  profile: 'main',
  kbps: 500,
  seconds: 20,
}
const reordered: Encoding = { ...small, size: '480x270', bFrames: 2, profile: 'high' }

/** A new encoder after a long pause and after a short one, and networks that all vanish. */
export const shortPlays: readonly Play[] = [
  {
    name: 'kills',
    acts: [
      { encoding: small, offsetSeconds: 900, liveMillis: 2_500, end: 'kill', awayMillis: 3_000 },
      { encoding: reordered, offsetSeconds: 0, liveMillis: 2_500, end: 'kill', awayMillis: 300 },
      { encoding: small, offsetSeconds: 95_440, liveMillis: 2_500, end: 'kill', awayMillis: 0 },
    ],
  },
]
export const shortOutage: Play = {
  name: 'outage',
  acts: [{ encoding: small, offsetSeconds: 10, liveMillis: 2_500, end: 'outage', awayMillis: 4_000 }],
}

type Choice = Pick<Encoding, 'size' | 'frameRate' | 'bFrames' | 'kbps'> & Partial<Pick<Encoding, 'profile'>>

const choices: Readonly<Record<Encoding['video'], readonly [Choice, ...Choice[]]>> = {
  h264: [
    { size: '640x360', frameRate: 30, bFrames: 0, profile: 'baseline', kbps: 500 },
    { size: '854x480', frameRate: 60, bFrames: 2, profile: 'main', kbps: 1_000 },
    { size: '1280x720', frameRate: 30, bFrames: 2, profile: 'high', kbps: 1_500 },
    { size: '1920x1080', frameRate: 60, bFrames: 0, profile: 'high', kbps: 3_000 },
  ],
  hevc: [
    { size: '640x360', frameRate: 30, bFrames: 0, kbps: 400 },
    { size: '854x480', frameRate: 60, bFrames: 2, kbps: 800 },
    { size: '1280x720', frameRate: 30, bFrames: 2, kbps: 1_200 },
    { size: '1920x1080', frameRate: 30, bFrames: 0, kbps: 2_000 },
  ],
}

/** Each publisher begins in another part of what is encoded. */
const partSeconds = 5
const partsMax = 8
/** The last one wraps after some seconds. */
const offsets = [0, 1.4, 700, 18_000, 95_438] as const
const outageSeconds = [0.3, 1, 3, 7, 20] as const

/** @param kills of all plays together. */
export function longPlays(seed: number, kills: number): Play[] {
  const random = createRandom(seed)
  const kinds = (['h264', 'hevc'] as const).flatMap((video) =>
    (['aac', 'opus'] as const).map((audio) => ({ video, audio })),
  )
  return kinds.flatMap(({ video, audio }, index) => {
    const own = Math.floor((kills + index) / kinds.length)
    const outages = outageSeconds.map((seconds): Act => {
      const encoding = { ...choices[video][0], video, audio, seconds: 60 }
      return {
        encoding,
        offsetSeconds: random.pick(offsets),
        liveMillis: 3_000,
        end: 'outage',
        awayMillis: seconds * 1_000,
      }
    })
    // Two recordings, so that a publisher differs from the one before.
    return [
      { name: `${video} ${audio} kills`, acts: actsOf(random, { video, audio }, own + 1) },
      ...outages.map((act) => ({ name: `${video} ${audio} outage of ${act.awayMillis} ms`, acts: [act] })),
    ]
  })
}

function actsOf(random: Random, codecs: Pick<Encoding, 'video' | 'audio'>, count: number): Act[] {
  const acts: Act[] = []
  const uses = new Map<Choice, number>()
  let last: Choice | undefined
  while (acts.length < count) {
    const choice = random.pick(choices[codecs.video])
    const used = uses.get(choice) ?? 0
    // The judge distinguishes publishers by their pictures.
    if (choice === last) continue
    last = choice
    uses.set(choice, used + 1)
    acts.push({
      fromSeconds: (used % partsMax) * partSeconds,
      encoding: { ...choice, ...codecs, seconds: partsMax * partSeconds },
      offsetSeconds: random.pick(offsets),
      liveMillis: Math.round(random.between(1_200, 4_000)),
      end: 'kill',
      awayMillis: Math.round(random.between(300, 6_000)),
    })
  }
  return acts
}
