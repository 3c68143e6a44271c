/**
 * Flashes and beeps that begin together at each second of a stream, and a player that measures by how much they are
 * apart when they arrive.
 */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { atEnd } from './at-end.ts'
import { endChild, withParent } from './obs-process.ts'

/** How long each of them is. */
const beatSeconds = 0.14
/** A beep that is further away belongs to another flash, or to none. */
const apartSecondsMax = 0.4

/** In the upper part of the picture, above the line in which the bar code is read. */
const flashArea = 'x=0:y=0:w=640:h=80'
export const flashFilter = [
  `drawbox=${flashArea}:c=black:t=fill`,
  `drawbox=${flashArea}:c=white:t=fill:enable='lt(mod(t+0.001,1),${beatSeconds})'`,
].join(',')

/** Exact to a sample, unlike a filter that is switched on and off. */
export const beepSource = `aevalsrc=exprs='0.5*sin(2*PI*1000*t)*lt(mod(t,1),${beatSeconds})':sample_rate=48000`

export interface Beat {
  /** By the clock of this machine. */
  readonly at: number
  /** From the beginning of the flash to that of the beep, in the time of the stream. */
  readonly offsetMillis: number
}

/** Plays a stream with ffmpeg to the end of the tests of the file. It calls again when its connection ends. */
export function startBeatJudge(url: string) {
  const beats: Beat[] = []
  let isOver = false
  let connections = 0
  let flashes: number[] = []
  let beeps: number[] = []
  let wasWhite = true
  const pair = () => {
    for (const flash of flashes) {
      const beep = beeps.find((each) => Math.abs(each - flash) < apartSecondsMax)
      if (beep === undefined) continue
      beats.push({ at: Date.now(), offsetMillis: (beep - flash) * 1_000 })
      flashes = flashes.filter((each) => each > flash)
      beeps = beeps.filter((each) => each > beep)
      return
    }
    flashes = flashes.slice(-3)
    beeps = beeps.slice(-3)
  }
  const read = (line: string) => {
    const frame = /pts_time:\s*(-?[\d.]+).*mean:\[(\d+)/.exec(line)
    if (frame) {
      const isWhite = Number(frame[2]) > 128
      if (isWhite && !wasWhite) flashes.push(Number(frame[1]))
      wasWhite = isWhite
    }
    const sound = /silence_end:\s*(-?[\d.]+)/.exec(line)
    if (sound) beeps.push(Number(sound[1]))
    pair()
  }
  const start = () => {
    connections += 1
    const video = '[0:v]crop=40:40:300:20,scale=1:1,format=gray,showinfo[v]'
    const audio = '[0:a]silencedetect=noise=-30dB:duration=0.2[a]'
    const options = ['-nostdin', '-hide_banner', '-nostats', '-loglevel', 'info', '-copyts', '-i', url]
    const maps = ['-filter_complex', `${video};${audio}`, '-map', '[v]', '-map', '[a]', '-f', 'null', '-']
    const [program = '', ...args] = withParent('ffmpeg', ...options, ...maps)
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    createInterface({ input: child.stderr }).on('line', read)
    child.once('exit', () => {
      ;[flashes, beeps, wasWhite] = [[], [], true]
      if (!isOver) player = start()
    })
    return child
  }
  let player = start()
  const end = async () => {
    isOver = true
    await endChild(player)
  }
  atEnd(end)
  return { beats: beats as readonly Beat[], connections: () => connections, end }
}
