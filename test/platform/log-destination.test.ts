/** The output of logs that cannot be written. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../support/folders.ts'
import { eventually } from '../support/relays.ts'

/** In units of 512 bytes, as `sh` counts them. */
const limitBlocks = 128

/** Logs the number of lines that it receives, each of about a kilobyte, and reports it. Exits when it receives 0. */
const program = `
  import { createLog } from './platform/log.ts'
  const log = createLog('test', 'info')
  let line = 0
  process.on('message', (lines) => {
    if (lines === 0) process.exit(0)
    for (let left = lines; left > 0; left -= 1) log.info({ line: (line += 1), text: 'x'.repeat(1000) }, 'logged')
    process.send('alive')
  })
  process.send('alive')`

interface Logging {
  readonly child: ChildProcess
  readonly file: string
  /** Resolves once the program has logged the lines. */
  log(lines: number): Promise<void>
}

/** A program whose output file cannot grow beyond a limit, as on a full disk. Truncating the file makes space. */
async function startLogging(): Promise<Logging> {
  const file = join(await temporaryFolder(), 'log')
  const output = openSync(file, 'a')
  const node = [process.execPath, '--import', 'tsx', '--input-type=module', '-e', program]
  const child = spawn('sh', ['-c', `ulimit -f ${limitBlocks}; exec "$@"`, 'sh', ...node], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: ['ignore', output, 'inherit', 'ipc'],
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '' },
  })
  closeSync(output)
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  const log = async (lines: number) => {
    const done = once(child, 'message')
    child.send(lines)
    await done
  }
  return { child, file, log }
}

const sizeOf = (file: string) => statSync(file).size
const limit = limitBlocks * 512

test('a process whose log cannot be written keeps running, and reports the number of dropped lines later', async () => {
  const { file, log } = await startLogging()
  await log(3000)
  await eventually(
    () => sizeOf(file),
    (size) => size === limit,
  )
  // The process is still alive.
  await log(1)
  let text = ''
  const noteAndNext = /"lines":(\d+),"msg":"log lines were dropped.*\n.*"line":(\d+),/
  while (!noteAndNext.test(text)) {
    text += await eventually(
      () => readFileSync(file, 'utf8'),
      (content) => content.length === limit || noteAndNext.test(text + content),
    )
    truncateSync(file)
  }
  const [, dropped, next] = noteAndNext.exec(text) ?? []
  const buffered = [...text.slice(0, text.indexOf('"lines":')).matchAll(/"line":(\d+),/g)].map(([, line]) =>
    Number(line),
  )
  // Buffered lines are written in their order, and all other lines are counted.
  expect(buffered).toEqual(Array.from(buffered, (_, index) => index + 1))
  expect(buffered.length + Number(dropped) + 1).toBe(Number(next))
  await log(1)
  await eventually(
    () => readFileSync(file, 'utf8'),
    (content) => content.includes('"line":3002,'),
  )
})

test('a process exits at once when its log cannot be written', async () => {
  const { child, file, log } = await startLogging()
  await log(200)
  await eventually(
    () => sizeOf(file),
    (size) => size === limit,
  )
  const ended = once(child, 'exit')
  child.send(0)
  expect(await ended).toEqual([0, null])
})

test('a process that logs and exits has written all lines', async () => {
  const file = join(await temporaryFolder(), 'log')
  const output = openSync(file, 'a')
  const source = `
    import { createLog } from './platform/log.ts'
    const log = createLog('test', 'info')
    log.info('first')
    setImmediate(() => setTimeout(() => {
      for (let line = 0; line < 1000; line += 1) log.info({ line }, 'logged')
      process.exit(0)
    }, 100))`
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', source], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: ['ignore', output, 'inherit'],
  })
  closeSync(output)
  expect(await once(child, 'exit')).toEqual([0, null])
  expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(1001)
})
