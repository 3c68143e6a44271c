/** The completion scripts of svc. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../support/folders.ts'
import { runSvcHere } from '../../support/svc.ts'

test('bash completes commands, options and values', async () => {
  const script = join(await temporaryFolder(), 'completion.bash')
  await writeFile(script, (await runSvcHere(['completion', 'bash'])).stdout)
  const line = `source ${script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _svc; printf '%s\\n' "\${COMPREPLY[@]}"`
  /** What bash offers for the last word. */
  const complete = async (...words: string[]): Promise<string[]> => {
    const { stdout } = await promisify(execFile)('bash', ['-c', line, 'bash', 'svc', ...words])
    return stdout.split('\n').filter((word) => word !== '')
  }
  expect(await complete('se')).toEqual(['sessions'])
  expect(await complete('sessions', '')).toEqual(expect.arrayContaining(['list', 'show', 'watch', 'disconnect']))
  expect(await complete('sessions', 'list', '--st')).toEqual(['--state'])
  expect(await complete('sessions', 'list', '--state', '')).toEqual(['provisioning', 'active', 'grace', 'stopped'])
  expect(await complete('billing', 'events', 'list', '--all', '--status', 'pa')).toEqual(['parked'])
  expect(await complete('completion', 'f')).toEqual(['fish'])
  // Options of all commands, and a file name, which is left to bash.
  expect(await complete('jobs', 'list', '--js')).toEqual(['--json'])
  expect(await complete('jobs', 'list', '--password-file', '')).toEqual([])
})

test('the scripts for the other shells have the same commands', async () => {
  const zsh = await runSvcHere(['completion', 'zsh'])
  expect(zsh.stdout).toMatch(/^autoload -Uz bashcompinit/)
  const fish = await runSvcHere(['completion', 'fish'])
  expect(fish.stdout).toContain(`complete -c svc -n '__svc_is_at "svc sessions list"' -l state -x -a 'provisioning`)
})
