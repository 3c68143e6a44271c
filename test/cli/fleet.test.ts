import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { nodeArguments } from '../../platform/launcher.ts'
import { givenFolder } from '../relay-node/running.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))

const fleet = (...words: string[]) =>
  new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    const env = { PATH: '/usr/bin:/bin', SVC_DATA_DIR: givenFolder() }
    execFile(
      process.execPath,
      [...nodeArguments('cli/fleet.ts'), ...words],
      { cwd: project, env },
      (error, stdout, stderr) => {
        resolve({ code: error ? Number(error.code) : 0, stdout, stderr })
      },
    )
  })

test('the command explains itself without a running stack', async () => {
  expect(await fleet('--help')).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^Usage:\n {2}npm run fleet/),
    stderr: '',
  })
})

test('wrong arguments end with exit code 64, before a stack is looked for', async () => {
  expect(await fleet('statsu')).toEqual({
    code: 64,
    stdout: '',
    stderr: expect.stringMatching(/^statsu is not a command/),
  })
})

test('without a stack and without the variables of the worker, both ways out are named', async () => {
  const { code, stderr } = await fleet('status')
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^No stack is running in .* \(npm start\), or set DATABASE_URL/),
  ])
})
