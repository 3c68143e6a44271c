/** A relay that is installed and started by its user data, from the boot of its instance to the video. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { createInstanceId } from '../../providers/relay/instance-secrets.ts'
import { relayBundle } from '../../providers/relay/relay-bundle.ts'
import { createRelayUserData } from '../../providers/relay/user-data.ts'
import { eventually, givenControlPlane, secret, streamToken } from '../relay-node/running.ts'
import { startApi } from '../support/api.ts'
import { findFreePort } from '../support/ports.ts'
import { givenMachine, prepared } from './relay-machine.ts'
import { StreamSink, StreamSource } from './srt-stream.ts'

const sessionId = '6f1c3c54-9c44-4b6e-8f0e-6b1c2f6f3a10'

interface CloudConfig {
  readonly write_files: readonly { readonly path: string; readonly content: string }[]
  readonly runcmd: readonly (readonly string[])[]
}

/** What cloud-init and systemd do with the user data, with free ports in the place of those that all instances have. */
async function boot(userData: string) {
  const machine = await givenMachine(prepared)
  const { write_files, runcmd } = parse(userData) as CloudConfig
  const contentOf = (path: string) => write_files.find((file) => file.path === path)?.content ?? ''
  const [publishPort, playPort, srtlaPort, statsPort] = [
    await findFreePort(),
    await findFreePort(),
    await findFreePort(),
    0,
  ]
  const ports = { PUBLISH: publishPort, PLAY: playPort, SRTLA: srtlaPort, STATS: statsPort }
  const unit = contentOf('/etc/systemd/system/relay-node.service')
  const command = (/^ExecStart=(.*)$/m.exec(unit)?.[1] ?? '')
    .replace('/usr/bin/env ', 'exec ')
    .replace('/opt/relay-node/relay-node.mjs', machine.program)
    .replace('/var/lib/relay-node/', `${machine.folder}/`)
  const lines = [
    'set -a',
    contentOf('/etc/relay-node/environment'),
    ...Object.entries(ports).map(([name, port]) => `SVC_RELAY_${name}_PORT=${port}`),
    command,
  ]
  await writeFile(join(machine.folder, 'service.sh'), lines.join('\n'))
  const script = join(machine.folder, 'install.sh')
  await writeFile(script, contentOf('/opt/relay-node/install.sh'))
  const [, , url = '', sha256 = '', engine = ''] = runcmd.at(-1) ?? []
  const start = `exec sh ${machine.folder}/service.sh`
  return { publishPort, playPort, ...machine.install(url, sha256, { script, engine, start }) }
}

test('an instance boots without a session, and forwards video once it has one', async () => {
  const [api, plane] = [await startApi(), await givenControlPlane()]
  const { fileName, sha256 } = await relayBundle()
  const instanceId = createInstanceId('aws')
  const spec = {
    instanceId,
    sessionId: null,
    region: 'eu-1',
    zone: 0,
    streamTokenHash: null,
    apiUrl: plane.url,
    relayAuthSecret: secret,
    healthIntervalSeconds: 1,
    capMbps: 48,
    engine: 'srt-live-transmit' as const,
  }
  const relay = await boot(
    createRelayUserData({ spec, agentUrl: `${api.url}/relay-node/${fileName}`, agentSha256: sha256 }),
  )
  await eventually(
    () => plane.reports.length,
    (count) => count === 1,
  )
  expect(plane.reports[0]).toMatchObject({ secret, body: { session_id: null, instance_id: instanceId } })

  plane.assigns({ session_id: sessionId, stream_token: streamToken })
  await eventually(
    () => plane.from(sessionId).length,
    (count) => count >= 1,
  )
  const player = new StreamSink(`srt://127.0.0.1:${relay.playPort}?mode=caller&streamid=play/live/${streamToken}`)
  new StreamSource(`srt://127.0.0.1:${relay.publishPort}?mode=caller&streamid=publish/live/${streamToken}`, 4_000)
  await player.untilReceived(1_000_000)

  await sleep(1_500)
  expect(plane.reports.at(-1)?.body.stats).toMatchObject({ publishing: true, players: 1 })
  expect(relay.output()).not.toContain(streamToken)
  expect(relay.output()).not.toContain(secret)
})
