/** A relay for OBS with a stage that shows on loss what a test says, or with the stage off. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { onTestFinished } from 'vitest'
import type { OnLoss } from '../../domain/relay/on-loss.ts'
import type { RelayPorts } from '../../domain/relay/ports.ts'
import { nodeArguments } from '../../platform/launcher.ts'
import { parseStreamTokenHash } from '../../platform/stream-token-hashes.ts'
import { run } from '../relay-node/control-plane.ts'
import {
  endOf,
  eventually,
  givenControlPlane,
  hashedToken,
  startRelay,
  statsOf,
  streamToken,
} from '../relay-node/running.ts'

export const pictureModes = ['hold', 'freeze', 'slate', 'off'] as const satisfies readonly (OnLoss | 'off')[]
export type PictureMode = (typeof pictureModes)[number]

export interface PictureRelay {
  readonly publishUrl: string
  readonly playUrl: string
}

const urlsOf = ({ publishPort, playPort }: Pick<RelayPorts, 'publishPort' | 'playPort'>): PictureRelay => ({
  publishUrl: `srt://127.0.0.1:${publishPort}?streamid=publish/live/${streamToken}`,
  playUrl: `srt://127.0.0.1:${playPort}?streamid=play/live/${streamToken}`,
})

/** Starts the relay, and ends it after the test. */
export async function startPictureRelay(mode: PictureMode): Promise<PictureRelay> {
  if (mode === 'off') return startWithoutStage()
  const plane = await givenControlPlane()
  const relay = startRelay({ apiUrl: plane.url, variables: { PATH: process.env.PATH } })
  const state = await relay.up()
  const token = parseStreamTokenHash(hashedToken(streamToken))
  const digest = mode === 'slate' ? plane.addSlate(await drawSlate()) : null
  const admission = { revision: 1, stream_token: token, token_plays: true, play_keys: [], on_loss: mode, slate: digest }
  plane.answers({ status: 200, body: { ...(run().body as object), admission } })
  await eventually(
    () => statsOf(state),
    ({ timeline }) => timeline.mode === mode,
  )
  return urlsOf(state)
}

async function startWithoutStage(): Promise<PictureRelay> {
  const command = [...nodeArguments('bench/stage-relay.ts'), 'off', streamToken]
  const child = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await endOf(child)
  })
  const [line] = await once(child.stdout, 'data')
  return urlsOf(JSON.parse(String(line)) as RelayPorts)
}

/** One without the bar code of the stream. */
async function drawSlate(): Promise<Buffer> {
  const source = ['-f', 'lavfi', '-i', 'color=c=navy:s=1280x720', '-frames:v', '1']
  const output = ['-c:v', 'mjpeg', '-f', 'image2pipe', 'pipe:1']
  const { stdout } = await promisify(execFile)('ffmpeg', ['-nostdin', '-loglevel', 'error', ...source, ...output], {
    encoding: 'buffer',
  })
  return stdout
}
