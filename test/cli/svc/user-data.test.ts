/** The export and the erasure of an account with svc. */
import { randomUUID } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, test, vi } from 'vitest'
import { exitCodeOf, exitCodes } from '../../../cli/svc/exit-codes.ts'
import { createProgram } from '../../../cli/svc/program.ts'
import { startApi } from '../../support/api.ts'
import { temporaryFolder } from '../../support/folders.ts'
import { operatorPassword } from '../../support/relays.ts'

const api = await startApi({ SVC_OPERATOR_PASSWORD: operatorPassword })

beforeEach(() => {
  vi.stubEnv('SVC_OPERATOR_PASSWORD', operatorPassword)
  vi.stubEnv('SVC_API_URL', api.url)
  return () => vi.unstubAllEnvs()
})

/** Runs a command in this process. */
async function svc(...words: string[]): Promise<{ exitCode: number; output: string }> {
  let output = ''
  const written = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    output += String(text)
    return true
  })
  const remarks = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  try {
    await createProgram().parseAsync(words, { from: 'user' })
    return { exitCode: 0, output }
  } catch (error) {
    return { exitCode: exitCodeOf(error), output }
  } finally {
    written.mockRestore()
    remarks.mockRestore()
  }
}

const isDue = async (userId: string) =>
  (await api.sql`select from users where id = ${userId} and deletion_due_at <= now()`).length === 1

test('an export is printed as JSON', async () => {
  const { userId, email } = await api.given.user()
  const { exitCode, output } = await svc('users', 'export', email)
  expect(exitCode).toBe(exitCodes.ok)
  expect(JSON.parse(output)).toMatchObject({ user_id: userId, tables: { users: [{ email }] } })
})

test('an export is written to a new file that only its owner can read', async () => {
  const { userId } = await api.given.user()
  const file = join(await temporaryFolder(), 'account.json')
  expect(await svc('users', 'export', userId, '--output', file)).toEqual({ exitCode: exitCodes.ok, output: '' })
  expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ user_id: userId })
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect((await svc('users', 'export', userId, '--output', file)).exitCode).toBe(exitCodes.usage)
})

test('an account is erased with its address and a reason', async () => {
  const { userId, email } = await api.given.user()
  const { exitCode, output } = await svc('users', 'erase', email, '--email', email, '--reason', 'ticket 4711', '--yes')
  expect([exitCode, output]).toEqual([exitCodes.ok, 'scheduled\n'])
  expect(await isDue(userId)).toBe(true)
})

test.each([
  ['another address', ['--email', 'another@example.com', '--reason', 'x']],
  ['no address', ['--reason', 'x']],
  ['the claim that there is none', ['--no-email', '--reason', 'x']],
  ['no reason', ['--email', 'streamer@example.com']],
])('an account is not erased with %s', async (_, flags) => {
  const { userId } = await api.given.user()
  expect((await svc('users', 'erase', userId, ...flags, '--yes')).exitCode).toBe(exitCodes.usage)
  expect(await isDue(userId)).toBe(false)
})

test('an account without an address is erased with --no-email', async () => {
  const { userId } = await api.given.user()
  await api.sql`update users set email = null where id = ${userId}`
  expect((await svc('users', 'erase', userId, '--no-email', '--reason', 'x', '--json')).exitCode).toBe(exitCodes.ok)
  expect(await isDue(userId)).toBe(true)
})

test('an unknown account ends with the exit code for it', async () => {
  expect((await svc('users', 'export', randomUUID())).exitCode).toBe(exitCodes.notFound)
  expect((await svc('users', 'erase', randomUUID(), '--no-email', '--reason', 'x')).exitCode).toBe(exitCodes.notFound)
})
