/** The alert rules, checked by promtool. */
import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const rules = fileURLToPath(new URL('../../deploy/prometheus/rules', import.meta.url))
const listFiles = async (folder: string) => (await readdir(folder)).filter((name) => name.endsWith('.yml'))

/** Resolves with the output; promtool prints failures to standard output, too. */
const promtool = (...args: string[]) =>
  promisify(execFile)('promtool', args, { cwd: rules }).then(
    ({ stdout }) => ({ isOk: true, stdout }),
    ({ stdout, stderr }: { stdout: string; stderr: string }) => ({ isOk: false, stdout: stdout + stderr }),
  )

test('all rules are valid', async () => {
  const { isOk, stdout } = await promtool('check', 'rules', ...(await listFiles(rules)))
  expect(isOk, stdout).toBe(true)
})

const cases = await listFiles(`${rules}/tests`)
test.each(cases)('the alerts fire and stay quiet as %s says', async (name) => {
  const { isOk, stdout } = await promtool('test', 'rules', `tests/${name}`)
  expect(isOk, stdout).toBe(true)
})
