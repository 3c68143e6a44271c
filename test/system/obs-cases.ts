/** What a stream in OBS goes through, and for how long OBS shows no fresh picture. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { eventually } from '../support/eventually.ts'
import type { PictureWatch } from '../support/obs-picture.ts'
import type { ObsService, Playing } from './obs-service.ts'

export interface ObsCase {
  /** Stable, of the figure. */
  readonly name: string
  /** A sentence, as the name of a test. */
  readonly behaviour: string
  /** What is measured, of the figure. */
  readonly what: string
  /** The most seconds without a fresh picture; without it OBS never shows one. */
  readonly secondsMax?: number
  /** Part of every run of the system tests. */
  readonly isShort?: true
  /** @returns the seconds that `what` names. */
  readonly run: (service: ObsService) => Promise<number>
}

/** After the picture is back, so that a second break would count too. */
const steadyMillis = 3_000
const days = 5

/** Runs a fault on a stream that plays. @param fault resolves with the moment from which new pictures can be made. */
async function withoutFresh(
  service: ObsService,
  fault: (playing: Playing) => Promise<number | undefined>,
  secondsMax: number,
): Promise<number> {
  const playing = await service.playing()
  try {
    const from = Date.now()
    const again = (await fault(playing)) ?? from
    await playing.watch.untilMadeAfter(again, secondsMax)
    await sleep(steadyMillis)
    return playing.watch.figures(from).secondsWithoutFresh
  } finally {
    await service.clear(playing)
  }
}

/** Takes the publisher away for some seconds. */
const publisherGone = (end: 'stop' | 'kill', seconds: number) => (service: ObsService) =>
  withoutFresh(
    service,
    async ({ stream }) => {
      await stream[end]()
      await sleep(seconds * 1000)
      stream.start()
      return Date.now()
    },
    60,
  )

async function sourceAfterPublisher(service: ObsService): Promise<number> {
  const stream = await service.publish()
  let watch: PictureWatch | undefined
  try {
    await service.untilSession((session) => session?.ingest?.publishing === true)
    const from = Date.now()
    watch = await service.play()
    return await watch.untilFresh(from, 30)
  } finally {
    await service.clear({ stream, watch })
  }
}

async function sourceBeforePublisher(service: ObsService): Promise<number> {
  // A relay that had a stream shows its last picture.
  await service.stop()
  await service.start()
  const watch = await service.play()
  try {
    await sleep(5_000)
    expect(watch.latest()).toEqual({ kind: 'none' })
    const from = Date.now()
    const stream = await service.publish()
    try {
      return await watch.untilMadeAfter(from, 30)
    } finally {
      await stream.kill()
    }
  } finally {
    await service.clear({ watch })
  }
}

const relayKilled = (service: ObsService) =>
  withoutFresh(
    service,
    async () => {
      const from = Date.now()
      const lost = await service.killRelay()
      const replaced = await service.untilSession(
        (session) => session?.state === 'active' && session.instance_id !== lost.instance_id,
      )
      expect(replaced.session_id).toBe(lost.session_id)
      return from
    },
    90,
  )

const startedAgain = (service: ObsService) =>
  withoutFresh(
    service,
    async () => {
      await service.stop()
      await service.start()
      return undefined
    },
    90,
  )

/** The seconds from the start of the session to the picture, since what lies before it is as long as the user wants. */
async function startedDaysLater(service: ObsService): Promise<number> {
  const { stream, watch } = await service.playing()
  try {
    await stream.stop()
    const { connect, session_id } = await service.active()
    await service.stop()
    await service.passDays(days)
    const { transitions } = await service.history(session_id)
    expect(Date.now() - Date.parse(transitions.at(-1)?.at ?? '')).toBeGreaterThan(days * 86_400_000)
    const from = Date.now()
    expect((await service.start()).connect).toMatchObject({
      srt_url: connect?.srt_url,
      player_url: connect?.player_url,
    })
    stream.start()
    return await watch.untilMadeAfter(from, 90)
  } finally {
    await service.clear({ stream, watch })
  }
}

async function wrongKey(service: ObsService): Promise<number> {
  const stream = await service.publish()
  const { connect } = await service.active()
  const watch = await service.play(connect?.player_url.replace(/play\/live\/[\w-]+/, 'play/live/Zz99Yy88'))
  try {
    const from = Date.now()
    await eventually(service.relayLog, (log) => /"reason":"unauthorized".*callers were refused/.test(log))
    // OBS has called again by then.
    await sleep(10_000)
    expect(watch.samples.length).toBeGreaterThan(20)
    expect(watch.samples.filter(({ picture }) => picture.kind === 'picture')).toEqual([])
    return (Date.now() - from) / 1000
  } finally {
    await service.clear({ stream, watch })
  }
}

export const obsCases: readonly ObsCase[] = [
  {
    name: 'obs_source_after',
    behaviour: 'a source that is created while the stream runs shows it',
    what: 'source created while the stream runs → first picture',
    secondsMax: 10,
    isShort: true,
    run: sourceAfterPublisher,
  },
  {
    name: 'obs_source_before',
    behaviour: 'a source that is created before the stream shows it when it begins',
    what: 'source waits; publisher starts → first picture',
    secondsMax: 10,
    isShort: true,
    run: sourceBeforePublisher,
  },
  {
    name: 'obs_publisher_stops_3',
    behaviour: 'the picture comes back by itself after the publisher has stopped for 3 s',
    what: 'publisher stops, and starts 3 s later',
    secondsMax: 12,
    run: publisherGone('stop', 3),
  },
  {
    name: 'obs_publisher_vanishes_3',
    behaviour: 'the picture comes back by itself after the publisher has vanished for 3 s',
    what: 'publisher vanishes, and starts 3 s later',
    secondsMax: 15,
    run: publisherGone('kill', 3),
  },
  {
    name: 'obs_publisher_vanishes_15',
    behaviour: 'the picture comes back by itself after the publisher has vanished for 15 s',
    what: 'publisher vanishes, and starts 15 s later',
    secondsMax: 25,
    run: publisherGone('kill', 15),
  },
  {
    name: 'obs_relay_killed',
    behaviour: 'the picture comes back by itself after the relay was killed and replaced',
    what: 'relay killed and replaced',
    secondsMax: 30,
    run: relayKilled,
  },
  {
    name: 'obs_started_again',
    behaviour: 'the picture comes back by itself after the session was stopped and another one was started',
    what: 'session stopped, and started again at once',
    secondsMax: 30,
    run: startedAgain,
  },
  {
    name: 'obs_started_days_later',
    behaviour: 'a source that is left as it is shows the stream of a session that starts days later',
    what: `session started ${days} days after the last one, by the clock of the service → first picture`,
    secondsMax: 30,
    run: startedDaysLater,
  },
  {
    name: 'obs_wrong_key',
    behaviour: 'a source with a wrong key never shows a picture, and the relay counts the refusal',
    what: 'wrong key: never a picture, watched for',
    isShort: true,
    run: wrongKey,
  },
]
