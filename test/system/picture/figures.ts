/** The figures of all recordings of a mode, and those for docs/proof.md. */
import { writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg } from 'node:os'
import type { PictureFigures, PictureProof } from '../../../bench/picture-proof.ts'
import type { Decoded } from './decoded-frames.ts'
import type { Judgement } from './judgement.ts'
import type { Mode } from './scene.ts'

export interface Recording {
  readonly mode: Mode
  readonly name: string
  readonly gaps: number
  /** Whether the player kept its connection. */
  readonly isConnected: boolean
  readonly judgement: Judgement
  readonly decoded: Decoded
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

export const errorsOf = ({ judgement }: Recording): number => sum(Object.values(judgement.errors))

export function summarize(recordings: readonly Recording[]): PictureFigures {
  const judgements = recordings.map(({ judgement }) => judgement)
  const decoded = recordings.map((recording) => recording.decoded)
  return {
    streamErrors: sum(recordings.map(errorsOf)),
    stepsBack: sum(decoded.map(({ stepsBack }) => stepsBack)),
    complaints: sum(decoded.map(({ streamComplaints, decoderComplaints }) => streamComplaints + decoderComplaints)),
    largestStepMillis: Math.max(...decoded.map(({ largestStepMillis }) => largestStepMillis)),
    pictureGapMillis: Math.max(...judgements.map(({ pictureGapMillis }) => pictureGapMillis)),
    soundGapMillis: Math.max(...judgements.map(({ soundGapMillis }) => soundGapMillis)),
    offsetChangeMillis: Math.max(...judgements.map(({ offsetChangeMillis }) => offsetChangeMillis)),
    startsWithoutKeyFrame: sum(judgements.map(({ startsWithoutKeyFrame }) => startsWithoutKeyFrame)),
    cutUnits: sum(judgements.map(({ damagedUnits }) => damagedUnits)),
    sentUnits: sum(judgements.map(({ sentUnits }) => sentUnits)),
    arrivedUnits: sum(judgements.map(({ arrivedUnits }) => arrivedUnits)),
    gaps: sum(recordings.map(({ gaps }) => gaps)),
    lostConnections: recordings.filter(({ isConnected }) => !isConnected).length,
  }
}

export async function writeProof(file: string, seed: number, recordings: readonly Recording[]): Promise<void> {
  const modes = [...new Set(recordings.map(({ mode }) => mode))]
  const proof: PictureProof = {
    seed,
    measuredAt: `${new Date().toISOString().slice(0, 19)}Z`,
    machine: `${availableParallelism()} cores (${cpus()[0]?.model.trim()}), Node ${process.versions.node}`,
    load: Number(loadavg()[0]?.toFixed(1)),
    modes: Object.fromEntries(
      modes.map((mode) => [mode, summarize(recordings.filter((recording) => recording.mode === mode))]),
    ),
  }
  await writeFile(file, `${JSON.stringify(proof, null, 2)}\n`)
}
