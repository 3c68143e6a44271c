/** How a relay runs other programs. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { atLowPriority, type Command, endedWithRelay, unbuffered } from '../../relay-node/child-command.ts'

const searchPath = process.env.PATH ?? ''

test.runIf(process.platform === 'linux')('a program is run by those of the system, as far as it has them', () => {
  expect(atLowPriority(['/opt/program', 'argument'], searchPath)).toEqual([
    expect.stringMatching(/\/choom$/),
    '-n',
    '1000',
    '--',
    expect.stringMatching(/\/nice$/),
    '-n',
    '19',
    '/opt/program',
    'argument',
  ])
  for (const run of [endedWithRelay, unbuffered, atLowPriority])
    expect(run(['/opt/program', 'argument'], '/nowhere')).toEqual(['/opt/program', 'argument'])
})

test.runIf(process.platform === 'linux')(
  'a program gets all of them together, without variables of its own',
  async () => {
    const shell: Command = ['/bin/sh', '-c', 'nice; cat /proc/$$/oom_score_adj; echo $LD_PRELOAD $_STDBUF_O']
    const [path, ...args] = endedWithRelay(unbuffered(atLowPriority(shell, searchPath), searchPath), searchPath)
    const { stdout } = await promisify(execFile)(path, args, { env: {} })
    expect(stdout).toMatch(/^19\n1000\n\S*libstdbuf\S* 0\n$/)
  },
)

test.runIf(process.platform === 'linux')('what a program writes to a pipe arrives before it ends', async () => {
  const [path, ...args] = unbuffered(['/usr/bin/tr', 'a', 'b'], searchPath)
  const child = spawn(path, args, { stdio: ['pipe', 'pipe', 'inherit'], env: {} })
  onTestFinished(() => void child.kill('SIGKILL'))
  child.stdin?.write('a line\n')
  expect(String(await once(child.stdout ?? child, 'data'))).toBe('b line\n')
})
