/** The lock of a data folder, and processes that a killed start left running. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { DataFolder } from '../../../platform/embedded/data-folder.ts'
import { findProcess } from '../../../platform/processes.ts'
import { temporaryFolder } from '../../support/folders.ts'

async function startSleep(): Promise<ChildProcess & { pid: number }> {
  const child = spawn('sleep', ['60'])
  await once(child, 'spawn')
  onTestFinished(() => void child.kill('SIGKILL'))
  return child as ChildProcess & { pid: number }
}

/** Changes the lock as if its holder had been killed. */
async function killHolder(dir: string): Promise<void> {
  await rm(join(dir, 'start.lock.1'))
  await symlink(`${process.pid} of-an-earlier-boot`, join(dir, 'start.lock.1'))
}

test('a folder in use is refused with the process that uses it', async () => {
  const dir = await temporaryFolder()
  await DataFolder.open(dir)
  await expect(DataFolder.open(dir)).rejects.toThrow(`${dir} is in use by another npm start (process ${process.pid})`)
})

test('a closed folder can be opened again', async () => {
  const dir = await temporaryFolder()
  await (await DataFolder.open(dir)).close()
  const again = await DataFolder.open(dir)
  expect(again.endedLeftovers).toEqual([])
})

test('processes that a killed start left running are ended, the last started first', async () => {
  const dir = await temporaryFolder()
  const killed = await DataFolder.open(dir)
  const [database, service] = [await startSleep(), await startSleep()]
  await killed.recordProcess('database', database.pid)
  await killed.recordProcess('service', service.pid)
  await killHolder(dir)
  const next = await DataFolder.open(dir)
  expect(next.endedLeftovers).toEqual(['service', 'database'])
  expect(await findProcess(database.pid)).toBeUndefined()
})

test('a process with the recycled pid of a leftover is not ended', async () => {
  const dir = await temporaryFolder()
  const killed = await DataFolder.open(dir)
  const unrelated = await startSleep()
  await killed.recordProcess('database', unrelated.pid)
  await killHolder(dir)
  const file = join(dir, 'processes.json')
  const records = JSON.parse(await readFile(file, 'utf8')) as object[]
  await writeFile(file, JSON.stringify(records.map((record) => ({ ...record, identity: 'of-an-earlier-boot' }))))
  const next = await DataFolder.open(dir)
  expect(next.endedLeftovers).toEqual([])
  expect(await findProcess(unrelated.pid)).toMatchObject({ command: 'sleep 60' })
})

test.each(['', '[{"name":', 'null', '7', '{}', '[{"name":"start","pid":"x","identity":"y"}]'])(
  'a list of processes that holds %j is ignored',
  async (text) => {
    const dir = await temporaryFolder()
    await writeFile(join(dir, 'processes.json'), text)
    await expect(DataFolder.open(dir)).resolves.toBeInstanceOf(DataFolder)
  },
)

test('a folder of another user is refused with its owner and the way out', async () => {
  const uid = process.geteuid?.()
  if (uid === 0) process.seteuid?.(65_534)
  try {
    await expect(DataFolder.open('/usr')).rejects.toThrow(
      /can't be written by this user \(uid \d+\): \/usr belongs to another user \(uid 0\).*SVC_DATA_DIR/,
    )
    await expect(DataFolder.open('/usr/relay-control-plane')).rejects.toThrow(/can't be written by this user/)
  } finally {
    if (uid === 0) process.seteuid?.(0)
  }
})

test('one of many starts that find the lock of a killed start opens the folder', async () => {
  const dir = await temporaryFolder()
  await DataFolder.open(dir)
  await killHolder(dir)
  const outcomes = await Promise.allSettled(Array.from({ length: 16 }, () => DataFolder.open(dir)))
  expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(1)
  expect((await readdir(dir)).filter((name) => name.includes('.lock.'))).toHaveLength(1)
})
