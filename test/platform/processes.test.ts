/** The processes of this machine: how they are found and ended. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { endProcess, findProcess, isRunning, listProcesses, psTable } from '../../platform/processes.ts'

async function startShell(script: string) {
  const child = spawn('/bin/sh', ['-c', `${script}; echo ready; while :; do sleep 1; done`, 'a process of these tests'])
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  const found = await findProcess(child.pid ?? 0)
  if (!found) throw new Error('the process is not in the table')
  return { child, found }
}

test('a running process is found with its command line and its start time', async () => {
  const calledAt = Date.now()
  const { found } = await startShell(':')
  expect(found.command).toContain('a process of these tests')
  // The system tells the time of its boot in seconds.
  expect(found.startedAt.getTime()).toBeGreaterThan(calledAt - 2_000)
  expect(found.startedAt.getTime()).toBeLessThan(Date.now() + 2_000)
  expect(await listProcesses((command) => command === found.command)).toContainEqual({
    ...found,
    startedAt: expect.any(Date),
  })
  expect(await isRunning(found)).toBe(true)
})

test('without /proc the same processes are read from ps', async () => {
  const { found } = await startShell(':')
  const [fromPs] = await listProcesses((command) => command === found.command, psTable)
  expect(fromPs).toMatchObject({ pid: found.pid, command: found.command })
  expect(Math.abs((fromPs?.startedAt.getTime() ?? 0) - found.startedAt.getTime())).toBeLessThan(2000)
  expect(await psTable.find(999_999_999)).toBeUndefined()
})

test('a process that ignores the first signal gets the next one', async () => {
  const { child, found } = await startShell('trap "" TERM')
  const exit = once(child, 'exit')
  expect(
    await endProcess(found, [
      ['SIGTERM', 200],
      ['SIGKILL', 5000],
    ]),
  ).toBe(true)
  expect(await exit).toEqual([null, 'SIGKILL'])
  expect(await isRunning(found)).toBe(false)
})

test('a process with the recycled pid of another is not ended', async () => {
  const { found } = await startShell(':')
  expect(await endProcess({ ...found, identity: 'of-an-earlier-boot' }, [['SIGKILL', 1000]])).toBe(false)
  expect(await isRunning(found)).toBe(true)
})
