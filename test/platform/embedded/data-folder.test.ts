import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { DataFolder } from '../../../platform/embedded/data-folder.ts'
import { commandOf } from '../../../platform/embedded/processes.ts'
import { temporaryFolder } from '../../support/folders.ts'

const lockFile = (dir: string) => join(dir, 'lock-1.json')

async function sleeper(): Promise<ChildProcess & { pid: number }> {
  const child = spawn('sleep', ['60'])
  await once(child, 'spawn')
  onTestFinished(() => void child.kill('SIGKILL'))
  return child as ChildProcess & { pid: number }
}

/** Makes the lock look as a killed start leaves it. */
async function killOwner(dir: string): Promise<void> {
  const record = JSON.parse(await readFile(lockFile(dir), 'utf8')) as object
  await writeFile(lockFile(dir), JSON.stringify({ ...record, identity: 'of a boot long ago' }))
}

test('a folder in use is refused, with the process that uses it', async () => {
  const dir = await temporaryFolder()
  await DataFolder.lock(dir)
  await expect(DataFolder.lock(dir)).rejects.toThrow(`Another start (process ${process.pid}) is running on ${dir}`)
})

test('a folder that was given back can be locked again', async () => {
  const dir = await temporaryFolder()
  await (await DataFolder.lock(dir)).release()
  const again = await DataFolder.lock(dir)
  expect(again.ended).toEqual([])
})

test('the lock of a dead owner is taken over and what it left running is ended, last started first', async () => {
  const dir = await temporaryFolder()
  const dead = await DataFolder.lock(dir)
  const [database, service] = [await sleeper(), await sleeper()]
  await dead.record('database', database.pid)
  await dead.record('service', service.pid)
  await killOwner(dir)
  const next = await DataFolder.lock(dir)
  expect(next.ended).toEqual(['service', 'database'])
  expect(await commandOf(database.pid)).toBeUndefined()
})

test('a process that only has the pid of one that was left running is not touched', async () => {
  const dir = await temporaryFolder()
  const dead = await DataFolder.lock(dir)
  const stranger = await sleeper()
  await dead.record('database', stranger.pid)
  await killOwner(dir)
  const text = await readFile(lockFile(dir), 'utf8')
  const record = JSON.parse(text) as { children: Array<{ identity: string }> }
  for (const child of record.children) child.identity = 'of a boot long ago'
  await writeFile(lockFile(dir), JSON.stringify(record))
  const next = await DataFolder.lock(dir)
  expect(next.ended).toEqual([])
  expect(await commandOf(stranger.pid)).toBe('sleep 60')
})

test('an owner with our own pid from before a restart of the machine is a dead one', async () => {
  const dir = await temporaryFolder()
  await writeFile(
    lockFile(dir),
    JSON.stringify({ name: 'start', pid: process.pid, identity: 'of a boot long ago', children: [] }),
  )
  await expect(DataFolder.lock(dir)).resolves.toBeInstanceOf(DataFolder)
})

test.each(['', '{"name":', 'null', '7', '{}', '{"name":"start","pid":"x","identity":"y","children":[null]}'])(
  'a lock that holds %j does not shut the owner out',
  async (text) => {
    const dir = await temporaryFolder()
    await writeFile(lockFile(dir), text)
    await expect(DataFolder.lock(dir)).resolves.toBeInstanceOf(DataFolder)
  },
)

test('a folder of another user is refused, with its owner and a way out', async () => {
  const uid = process.geteuid?.()
  if (uid === 0) process.seteuid?.(65_534)
  try {
    await expect(DataFolder.lock('/usr')).rejects.toThrow(
      /can't be written by this user \(uid \d+\): \/usr belongs to another user \(uid 0\).*SVC_DATA_DIR/,
    )
    await expect(DataFolder.lock('/usr/relay-control-plane')).rejects.toThrow(/can't be written by this user/)
  } finally {
    if (uid === 0) process.seteuid?.(0)
  }
})

test('of many that find a dead lock exactly one gets the folder', async () => {
  const dir = await temporaryFolder()
  await DataFolder.lock(dir)
  await killOwner(dir)
  const outcomes = await Promise.allSettled(Array.from({ length: 16 }, () => DataFolder.lock(dir)))
  expect(outcomes.filter((outcome) => outcome.status === 'fulfilled')).toHaveLength(1)
})
