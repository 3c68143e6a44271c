/** The process of an embedded server, and its log. */
import { existsSync } from 'node:fs'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ServerProcess } from '../../../platform/embedded/server-process.ts'
import { temporaryFolder } from '../../support/folders.ts'
import { eventually } from '../../support/relays.ts'

const mebibyte = 1024 * 1024

test('the log of a running program is truncated, and its last lines can still be read', async () => {
  const folder = await temporaryFolder()
  const [logFile, mayGoOn] = [join(folder, 'log'), join(folder, 'may-go-on')]
  const script = `yes "a line of the log" | head -c 24000000
    until [ -e '${mayGoOn}' ]; do sleep 0.05; done; echo "the last line"; exec sleep 60`
  const server = await ServerProcess.start({
    executable: '/bin/sh',
    args: ['-c', script],
    env: {},
    logFile,
    logCheckMillis: 300,
  })
  onTestFinished(() => server.end([['SIGKILL', 2000]]))
  await eventually(() => existsSync(`${logFile}.1`), Boolean)
  await eventually(
    async () => (await stat(logFile)).size,
    (size) => size < mebibyte,
  )
  await writeFile(mayGoOn, '')
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
    executable: '/bin/sh',
    args: ['-c', 'exec sleep 60'],
    env: {},
    logFile,
    onSpawn: async (pid) => void pids.push(pid),
  })
  onTestFinished(() => server.end([['SIGKILL', 2000]]))
  expect(pids).toEqual([server.pid])
})
