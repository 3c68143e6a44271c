/** A relay with a player that records, and publishers that follow each other. */
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import type { OnLoss } from '../../../domain/relay/on-loss.ts'
import { hashStreamToken } from '../../../platform/stream-token-hashes.ts'
import { admitToken } from '../../../relay-node/admission.ts'
import { startDataPlane } from '../../../relay-node/data-plane.ts'
import {
  createLiveTransmitEngine,
  findLiveTransmit,
  liveTransmitCommand,
} from '../../../relay-node/live-transmit-engine.ts'
import { eventually, givenControlPlane, startRelay, streamToken } from '../../relay-node/running.ts'
import { SrtlaSender } from '../../support/srtla-sender.ts'
import { type Encoding, encode } from './encodings.ts'
import { Publisher } from './publisher.ts'
import { Recorder } from './recorder.ts'

/** `off`: the relay without the stage. */
export type Mode = OnLoss | 'off'
export const modes: readonly Mode[] = ['hold', 'freeze', 'slate', 'off']

const host = '127.0.0.1'
const tokenHash = hashStreamToken(streamToken, Buffer.alloc(32, 7).toString('base64url'))
const latencyMillis = 300
const linkCount = 3

export interface Act {
  readonly encoding: Encoding
  /** Where the publisher begins in what is encoded. */
  readonly fromSeconds?: number
  /** The first timestamp. */
  readonly offsetSeconds: number
  readonly liveMillis: number
  /** How the act ends, and for how long no data comes. */
  readonly end: 'kill' | 'outage'
  readonly awayMillis: number
}

interface RelayPorts {
  readonly srtlaPort: number
  readonly publishPort: number
  readonly playPort: number
}

const startWith = (mode: Mode, slate: Buffer): Promise<RelayPorts> =>
  mode === 'off' ? startWithoutStage() : startWithStage(mode, slate)

async function startWithStage(mode: OnLoss, slate: Buffer): Promise<RelayPorts> {
  const plane = await givenControlPlane()
  const digest = hash('sha256', slate, 'hex')
  const apiUrl = await serveSlate(plane.port, digest, slate)
  const relay = startRelay({ apiUrl, variables: { PATH: process.env.PATH } })
  const admission = {
    revision: 1,
    stream_token: tokenHash,
    token_plays: true,
    play_keys: [],
    on_loss: mode,
    slate: digest,
    stream_format: null,
  }
  plane.answers({ status: 200, body: { state: 'active', desired: 'run', report_in_seconds: 0.1, admission } })
  const state = await relay.up()
  await eventually(
    () => plane.reports.at(-1)?.body as { admission_revision?: number } | undefined,
    (report) => report?.admission_revision === 1,
  )
  return state
}

/** Answers requests for the slate, and passes all others on to the control plane. */
async function serveSlate(planePort: number, digest: string, slate: Buffer): Promise<string> {
  const server = createServer((incoming, response) => {
    if (incoming.url === `/api/v1/relay/slate/${digest}`) {
      response.writeHead(200, { 'content-type': 'image/jpeg' }).end(slate)
      return
    }
    const { method, headers, url: path } = incoming
    const passed = request({ host, port: planePort, method, headers, path }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    passed.on('error', () => response.destroy())
    incoming.pipe(passed)
  }).listen(0, host)
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://${host}:${(server.address() as AddressInfo).port}`
}

/** In this process, since no setting of the product turns the stage off. */
async function startWithoutStage(): Promise<RelayPorts> {
  const searchPath = process.env.PATH ?? ''
  const path = findLiveTransmit(searchPath)
  if (path === undefined) throw new Error('srt-live-transmit is not installed')
  const log = () => {}
  const options = { command: liveTransmitCommand(path, searchPath), log, isStageOff: true }
  const plane = await startDataPlane({
    hosts: [host],
    ports: { srtlaPort: 0, publishPort: 0, playPort: 0 },
    admission: admitToken(tokenHash),
    capMbps: 48,
    streamWeakKbps: 100,
    engine: createLiveTransmitEngine(options),
    statsAddresses: 'full',
    log,
  })
  onTestFinished(() => plane.close('the test is over'))
  return plane.ports()
}

/** Plays the acts, one after the other, and ends when the last one was live. */
export async function perform(mode: Mode, acts: readonly Act[], slate: Buffer) {
  const files = await Promise.all(acts.map(({ encoding }) => encode(encoding)))
  const ports = await startWith(mode, slate)
  const sender = acts.some(({ end }) => end === 'outage') ? await startSender(ports.srtlaPort) : undefined
  const streamId = (role: string) => `streamid=${role}/live/${streamToken}`
  const publishUrl = `srt://${host}:${sender?.port ?? ports.publishPort}?${streamId('publish')}`
  const recorder = new Recorder(`srt://${host}:${ports.playPort}?${streamId('play')}`)
  const publishers: Publisher[] = []
  for (const [index, { fromSeconds = 0, offsetSeconds, liveMillis, end, awayMillis }] of acts.entries()) {
    const source = { file: files[index] ?? '', fromSeconds, offsetSeconds }
    const publisher = new Publisher(publishUrl, source, latencyMillis)
    publishers.push(publisher)
    await untilLive(publisher, recorder)
    await sleep(liveMillis)
    if (end === 'outage') await loseNetworks(publisher, recorder, sender, awayMillis, liveMillis)
    if (index === acts.length - 1) continue
    await publisher.vanish()
    await sleep(end === 'kill' ? awayMillis : 0)
  }
  const { isConnected } = recorder
  await recorder.end()
  await publishers.at(-1)?.vanish()
  return {
    publishers,
    recorder,
    isConnected,
    gaps: acts.length - 1 + acts.filter(({ end }) => end === 'outage').length,
  }
}

async function startSender(srtlaPort: number): Promise<SrtlaSender> {
  const sender = await SrtlaSender.start({ host, srtlaPort, links: Array.from({ length: linkCount }, () => ({})) })
  onTestFinished(() => sender.close())
  return sender
}

async function loseNetworks(
  publisher: Publisher,
  recorder: Recorder,
  sender: SrtlaSender | undefined,
  awayMillis: number,
  liveMillis: number,
): Promise<void> {
  const outage = { from: performance.now(), to: Number.POSITIVE_INFINITY }
  publisher.outages.push(outage)
  sender?.kill()
  await sleep(awayMillis)
  sender?.revive()
  outage.to = performance.now()
  await untilLive(publisher, recorder)
  await sleep(liveMillis)
}

/** Waits for data of the publisher that arrives after now. */
async function untilLive(publisher: Publisher, recorder: Recorder): Promise<void> {
  let read = recorder.receivedBytes - (recorder.receivedBytes % 188)
  await eventually(
    () => {
      const fresh = recorder.received.subarray(read)
      read += fresh.length - (fresh.length % 188)
      return publisher.isPartOf(fresh)
    },
    (isLive) => isLive,
    30_000,
  )
}
