/** The lock of a file, also after its process was killed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { type FileLock, lockFile } from '../../platform/file-lock.ts'
import { temporaryFolder } from '../support/folders.ts'

const givenFile = async () => join(await temporaryFolder(), 'file')
const isLock = (lock: Awaited<ReturnType<typeof lockFile>>): lock is FileLock => 'release' in lock

/** Another process that holds the lock. */
async function startHolder(file: string) {
  const code = `
    const { lockFile } = await import(${JSON.stringify(pathToFileURL(resolve('platform/file-lock.ts')).href)})
    console.log('release' in (await lockFile(${JSON.stringify(file)})))
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', code])
  onTestFinished(() => void child.kill('SIGKILL'))
  const [printed] = await once(child.stdout, 'data')
  expect(String(printed).trim()).toBe('true')
  return child
}

test('a lock is held by one process until it is released', async () => {
  const file = await givenFile()
  const lock = await lockFile(file)
  expect(await lockFile(file)).toMatchObject({ heldBy: { pid: process.pid } })
  if (isLock(lock)) lock.release()
  expect(isLock(await lockFile(file))).toBe(true)
})

test('a lock of a suspended process is not taken, and that of a killed process is', async () => {
  const file = await givenFile()
  const holder = await startHolder(file)
  holder.kill('SIGSTOP')
  expect(await lockFile(file)).toMatchObject({ heldBy: { pid: holder.pid } })
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  expect(isLock(await lockFile(file))).toBe(true)
})

test('a lock of a process with the same pid before a reboot is taken', async () => {
  const file = await givenFile()
  await symlink(`${process.pid} of-an-earlier-boot`, `${file}.lock.7`)
  expect(isLock(await lockFile(file))).toBe(true)
})

test.each(['', 'not a lock', 'null'])('a file with the text "%s" in place of a lock is replaced', async (text) => {
  const file = await givenFile()
  await writeFile(`${file}.lock.1`, text)
  expect(isLock(await lockFile(file))).toBe(true)
})

test('one of many that compete for the lock of an ended process gets it, and it stays the only one', async () => {
  const file = await givenFile()
  await symlink(`${process.pid} of-an-earlier-boot`, `${file}.lock.1`)
  const locks = await Promise.all(Array.from({ length: 16 }, () => lockFile(file)))
  expect(locks.filter(isLock)).toHaveLength(1)
  expect(await readdir(join(file, '..'))).toHaveLength(1)
})
