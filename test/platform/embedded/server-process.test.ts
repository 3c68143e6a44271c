import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ServerProcess } from '../../../platform/embedded/server-process.ts'
import { temporaryFolder } from '../../support/folders.ts'
import { eventually } from '../../support/relays.ts'

const mebibyte = 1024 * 1024

async function startShell(script: string) {
  const logFile = join(await temporaryFolder(), 'log')
  const server = await ServerProcess.start({ executable: '/bin/sh', args: ['-c', script], env: {}, logFile })
  onTestFinished(() => server.end([['SIGKILL', 2000]]))
  return { server, logFile }
}

test('the log of a running program is truncated, and its last lines can still be read', async () => {
  const { server, logFile } = await startShell(
    'yes "a line of the log" | head -c 24000000; sleep 12; echo "the last line"; exec sleep 60',
  )
  await eventually(
    async () => (await stat(logFile)).size,
    (size) => size > 20 * mebibyte,
  )
  await eventually(
    async () => (await stat(logFile)).size,
    (size) => size < mebibyte,
  )
  expect(await readFile(`${logFile}.1`, 'utf8')).toMatch(/^a line of the log\n/)
  await eventually(
    () => server.readLastLines(),
    (lines) => lines === 'the last line',
  )
})

test('a process is reported as soon as it was spawned', async () => {
  const logFile = join(await temporaryFolder(), 'log')
  const pids: number[] = []
  const server = await ServerProcess.start({
    ...{ executable: '/bin/sh', args: ['-c', 'exec sleep 60'], env: {}, logFile },
    onSpawn: async (pid) => void pids.push(pid),
  })
  onTestFinished(() => server.end([['SIGKILL', 2000]]))
  expect(pids).toEqual([server.pid])
})
