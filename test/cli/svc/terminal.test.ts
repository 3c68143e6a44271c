/** The questions and headings of svc on a terminal. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { beforeAll, expect, test } from 'vitest'
import { startApi, type TestApi } from '../../support/api.ts'
import { temporaryFolder } from '../../support/folders.ts'
import { operatorPassword } from '../../support/relays.ts'
import { operatorVariables, svcLauncher } from '../../support/svc.ts'

// Each command is a process of its own, and some tests run several.
let api: TestApi
beforeAll(async () => {
  api = await startApi({ SVC_OPERATOR_PASSWORD: operatorPassword })
})

/** Runs a command on a pseudoterminal, and types an answer once it asks. */
async function runOnTerminal(
  words: readonly string[],
  answer: string,
  variables: Readonly<Record<string, string>> = {},
) {
  const quoted = [svcLauncher, ...words].map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['--quiet', '--return', '--command', quoted, '/dev/null'], {
    env: {
      PATH: process.env.PATH ?? '',
      TERM: 'xterm',
      SVC_DATA_DIR: await temporaryFolder(),
      ...operatorVariables(api.url),
      ...variables,
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let text = ''
  let isAnswered = false
  child.stdout.setEncoding('utf8').on('data', (more: string) => {
    text += more
    if (isAnswered || !text.includes('[y/N]')) return
    isAnswered = true
    child.stdin.write(answer)
  })
  const [code] = (await once(child, 'close')) as [number]
  return { code, text }
}

const isDisabled = async (userId: string) => {
  const [row] = await api.sql<{ isDisabled: boolean }[]>`
    select disabled_at is not null as is_disabled from users where id = ${userId}`
  return row?.isDisabled
}

test.each([
  ['no', 'n\n'],
  ['nothing', '\n'],
  ['Ctrl-C', '\u0003'],
])('on a terminal a change is asked for, and the answer %s changes nothing', async (_, answer) => {
  const { userId, email } = await api.given.user()
  const { code, text } = await runOnTerminal(['users', 'disable', email, '--reason', 'test'], answer)
  expect({ code, text }).toEqual({ code: 1, text: expect.stringContaining('Nothing was changed.') })
  expect(await isDisabled(userId)).toBe(false)
})

test('on a terminal the answer yes makes the change, and --yes makes it without a question', async () => {
  const [asked, unasked] = [await api.given.user(), await api.given.user()]
  expect(await runOnTerminal(['users', 'disable', asked.email, '--reason', 'test'], 'y\n')).toMatchObject({ code: 0 })
  const { code, text } = await runOnTerminal(['users', 'disable', unasked.email, '--reason', 'test', '--yes'], '')
  expect({ code, isAsked: text.includes('[y/N]') }).toEqual({ code: 0, isAsked: false })
  expect([await isDisabled(asked.userId), await isDisabled(unasked.userId)]).toEqual([true, true])
})

test('on a terminal fleet compare asks before it destroys instances, and not in a dry run', async () => {
  const refused = await runOnTerminal(['fleet', 'compare'], 'n\n')
  expect(refused).toEqual({ code: 1, text: expect.stringContaining('Destroy the instances without an owner? [y/N]') })
  expect(refused.text).toContain('Nothing was changed.')
  const { text } = await runOnTerminal(['fleet', 'compare', '--dry-run'], '')
  expect(text).toContain('No stack is running')
  expect(text).not.toContain('[y/N]')
})

test('headings are bold on a terminal, unless NO_COLOR is set', async () => {
  const bold = '\u001b[1m'
  expect((await runOnTerminal(['regions', 'list'], '')).text).toContain(`${bold}REGION`)
  expect((await runOnTerminal(['regions', 'list'], '', { NO_COLOR: '1' })).text).not.toContain(bold)
})
