/** What ffmpeg's programs say about a recording. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Of the demultiplexer: the decoder's complaints about pictures that are cut are counted apart. */
const streamComplaint = /mpegts|PES|corrupt|discontinuity|non.?monoton|invalid dts|DTS .* < |timestamps?/i
const outputBytesMax = 64_000_000

export interface Decoded {
  readonly frames: number
  /** Between two decoded pictures in their own times. */
  readonly largestStepMillis: number
  /** Pictures whose time is not after that of the one before. */
  readonly stepsBack: number
  readonly streamComplaints: number
  readonly decoderComplaints: number
  readonly firstComplaints: readonly string[]
}

export async function decode(received: Buffer, folder: string): Promise<Decoded> {
  const file = join(folder, 'received.ts')
  await writeFile(file, received)
  const entries = ['-select_streams', 'v:0', '-show_entries', 'frame=best_effort_timestamp_time', '-of', 'csv=p=0']
  const { stdout, stderr } = await promisify(execFile)('ffprobe', ['-v', 'warning', ...entries, file], {
    maxBuffer: outputBytesMax,
  })
  const times = stdout
    .split('\n')
    .map((line) => Number.parseFloat(line))
    .filter(Number.isFinite)
  const steps = times.slice(1).map((time, index) => time - (times[index] ?? time))
  const complaints = stderr.split('\n').filter((line) => line.trim() !== '')
  const ofStream = complaints.filter((line) => streamComplaint.test(line))
  return {
    frames: times.length,
    largestStepMillis: Math.round(1_000 * Math.max(0, ...steps)),
    stepsBack: steps.filter((step) => step <= 0).length,
    streamComplaints: ofStream.length,
    decoderComplaints: complaints.length - ofStream.length,
    firstComplaints: complaints.slice(0, 10),
  }
}
