/** The message of a local start that is ready. */
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findVideoObstacle, formatReadyMessage, type ReadyStack } from '../../cli/ready-message.ts'
import { temporaryFolder } from '../support/folders.ts'

const stack: ReadyStack = {
  api: 'http://localhost:8080',
  site: 'http://localhost:8081',
  mailbox: false,
  temporalUi: undefined,
  postgres: '127.0.0.1:5432',
  operatorPassword: 'as configured',
  logs: 'logs/',
  demo: { email: 'demo@example.com', password: 'a few words' },
  dataDir: undefined,
  videoObstacle: undefined,
}

async function folderWithEngine(): Promise<string> {
  const folder = await temporaryFolder()
  const path = join(folder, 'srt-live-transmit')
  await writeFile(path, '#!/bin/sh\n')
  await chmod(path, 0o755)
  return folder
}

test('where relays forward video, the message has lines that publish and play a test pattern', () => {
  const lines = formatReadyMessage(stack).split('\n')
  expect(lines.filter((line) => /^ff(mpeg|play) /.test(line))).toHaveLength(2)
  expect(lines.join('\n')).not.toContain('no video')
})

test('the commands of a stack in another data folder name that folder', () => {
  const commandsOf = (message: string) =>
    message.split('\n').flatMap((line) => /(\S+ )?npm run .*/.exec(line)?.[0] ?? [])
  expect(commandsOf(formatReadyMessage(stack))).toEqual(
    [' npm run demo', ' npm run svc -- users grant EMAIL', ' npm run svc -- --help'].map((text) =>
      expect.stringContaining(text.trim()),
    ),
  )
  expect(commandsOf(formatReadyMessage({ ...stack, dataDir: '/srv/relays' }))).toEqual([
    "SVC_DATA_DIR='/srv/relays' npm run demo",
    "SVC_DATA_DIR='/srv/relays' npm run svc -- users grant EMAIL",
    "SVC_DATA_DIR='/srv/relays' npm run svc -- --help",
  ])
})

test('the message names the mailbox only where there is one', () => {
  expect(formatReadyMessage({ ...stack, mailbox: true })).toContain('http://localhost:8081/mailbox')
  expect(formatReadyMessage(stack)).not.toContain('/mailbox')
})

test.each([
  ['linux', 'sudo apt-get install srt-tools'],
  ['darwin', 'brew install srt'],
] as const)('without an engine on %s, the message names the command that installs it', async (platform, command) => {
  const videoObstacle = findVideoObstacle('auto', [await temporaryFolder()], platform)
  const message = formatReadyMessage({ ...stack, videoObstacle })
  expect(message).toContain(`! Relays forward no video until this is installed:  ${command}\n`)
  expect(message).not.toContain('ffmpeg')
})

test('nothing has to be installed where the engine is found, and where it runs elsewhere', async () => {
  expect(findVideoObstacle('auto', [await temporaryFolder(), await folderWithEngine()], 'linux')).toBeUndefined()
  expect(findVideoObstacle('sls', [], 'linux')).toBeUndefined()
})

test('relays that are configured without an engine are named as such', async () => {
  expect(findVideoObstacle('none', [await folderWithEngine()], 'linux')).toContain('SVC_RELAY_ENGINE is none')
})

test('an http: address on another machine is warned of, since nobody can sign in there', () => {
  const of = (site: string) => formatReadyMessage({ ...stack, site })
  for (const site of ['http://192.168.1.5:8081', 'http://relay.example.com'])
    expect(of(site)).toContain(`! Nobody can sign in at ${site}: browsers keep the cookies of sign-ins at https:`)
  for (const site of [
    'http://localhost:8081',
    'http://127.0.0.1:8081',
    'http://[::1]:8081',
    'https://relay.example.com',
  ])
    expect(of(site)).not.toContain('Nobody can sign in')
})
