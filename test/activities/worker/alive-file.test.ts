/** The file by which a supervisor sees that a worker lives. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startAliveFile } from '../../../activities/worker/alive-file.ts'
import { createLog } from '../../../platform/log.ts'
import { testEnvironment } from '../../support/environment.ts'
import { temporaryFolder } from '../../support/folders.ts'
import { startProgram } from '../../support/programs.ts'
import { eventually } from '../../support/relays.ts'

const contentOf = (file: string) => readFile(file, 'utf8').catch(() => 'missing')

test('the file of a worker says that it is starting, then that it accepts work, and is missing after its end', async () => {
  const file = join(await temporaryFolder(), 'alive')
  const alive = startAliveFile(file, createLog('worker', 'silent'))
  onTestFinished(() => alive.stop())
  await eventually(
    () => contentOf(file),
    (text) => text === 'starting\n',
  )
  alive.markAccepting()
  await eventually(
    () => contentOf(file),
    (text) => text === 'accepting\n',
  )
  await alive.stop()
  expect(await contentOf(file)).toBe('missing')
})

test('a worker that waits for its database renews its file', async () => {
  const file = join(await temporaryFolder(), 'alive')
  const unreachable = 'postgres://127.0.0.1:1/none'
  const worker = startProgram('worker', testEnvironment({ DATABASE_URL: unreachable, SVC_WORKER_ALIVE_FILE: file }))
  await eventually(
    () => contentOf(file),
    (text) => text === 'starting\n',
  )
  await rm(file)
  await eventually(
    () => contentOf(file),
    (text) => text === 'starting\n',
  )
  await worker.stop()
  expect(await contentOf(file)).toBe('missing')
})
