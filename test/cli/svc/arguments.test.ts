/** The arguments of svc: help, and wrong ones. */
import { expect, test } from 'vitest'
import { runSvc, runSvcHere } from '../../support/svc.ts'

const id = '5d3f0c62-8a1e-4b7d-9c05-2f6e1a7b4d90'

test.each([
  ['a misspelt command', ['sesions'], 'Did you mean sessions?', 'svc --help'],
  ['a misspelt command of a group', ['sessions', 'shwo'], 'Did you mean show?', 'svc sessions --help'],
  ['a misspelt option', ['sessions', 'list', '--sate', 'active'], 'Did you mean --state?', 'svc sessions list --help'],
  ['a misspelt value', ['sessions', 'list', '--state', 'actve'], 'Did you mean active?', 'svc sessions list --help'],
  ['a value like no other', ['sessions', 'list', '--state', 'sideways'], 'provisioning, active, grace, stopped', ''],
  ['a text that is no id', ['sessions', 'show', 'abc'], "'abc'", 'svc sessions show --help'],
  ['a text that names no account', ['users', 'show', '..'], 'neither an email address nor the id', ''],
  ['too many add-ons', ['users', 'grant', id, '--addons', '4'], 'a whole number from 0 to 3', ''],
  ['a text that is no time', ['users', 'grant', id, '--until', 'tomorrow'], '2027-01-31T18:00:00Z', ''],
  ['a missing reason', ['sessions', 'disconnect', id], "'--reason <text>' not specified", ''],
  ['a missing reason of a resume', ['regions', 'resume', 'eu'], "'--reason <text>' not specified", ''],
  ['a missing filter', ['users', 'list'], 'Add --plan, --status or --disabled', ''],
  [
    'a wrong name of a fleet',
    ['fleet', 'adopt', '--name', 'Production'],
    '1 to 32 lower-case letters',
    'svc fleet adopt --help',
  ],
  ['a misspelt command of the fleet', ['fleet', 'statsu'], 'Did you mean status?', 'svc fleet --help'],
  ['options that exclude each other', ['audit', '--all', '--cursor', '1'], "'--all'", ''],
  ['an argument too many', ['regions', 'list', 'local'], 'too many arguments', 'svc regions list --help'],
])('%s is refused with the right one, before any request', async (_, words, message, help) => {
  const { code, stdout, stderr } = await runSvcHere(words)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(message)
  expect(stderr).toContain(help)
})

test('the help is printed on request with exit code 0, and without a command with 2', async () => {
  const asked = await runSvc(['users', '--help'])
  expect(asked).toMatchObject({ code: 0, stderr: '' })
  expect(asked.stdout).toMatch(/^Usage: svc users \[options\] \[command\]/)
  const missing = await runSvcHere(['users'])
  expect(missing).toMatchObject({ code: 2, stdout: '' })
  expect(missing.stderr).toMatch(/^Usage: svc users/)
})
