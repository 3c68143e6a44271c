/** The program of a relay that begins before its first publisher. */
import type { StreamFormat } from '../../domain/relay/stream-format.ts'
import type { Program } from './program-tables.ts'
import { streamTypeOf, videoTypeOf } from './silence.ts'

/** The ids that ffmpeg uses, so that publishers which use it keep theirs. */
const pids = { pmt: 0x1000, video: 0x100, audio: 0x101 }

export const startingProgram = ({ video, audio }: StreamFormat): Program => ({
  transportStreamId: 1,
  number: 1,
  pmtPid: pids.pmt,
  pcrPid: pids.video,
  descriptors: Buffer.alloc(0),
  streams: [
    { pid: pids.video, ...videoTypeOf(video.codec) },
    ...(audio ? [{ pid: pids.audio, ...streamTypeOf(audio) }] : []),
  ],
})
