/** `svc incidents`: adding, noting, listing and ending. */
import { expect, test } from 'vitest'
import { startApi } from '../../support/api.ts'
import { operatorPassword } from '../../support/relays.ts'
import { operatorVariables, runSvcHere, svcOf } from '../../support/svc.ts'

const api = await startApi({ SVC_OPERATOR_PASSWORD: operatorPassword })
const svc = svcOf(api.url)
const run = (...words: string[]) => runSvcHere(['incidents', ...words], operatorVariables(api.url))

test('an incident is added, noted, listed and ended, and the audit has all of it', async () => {
  const since = new Date(Date.now() - 3_600_000).toISOString()
  const added = JSON.parse(
    await svc('incidents', 'add', '--part', 'site', '--text', 'Down.', '--since', since, '--json'),
  )
  const { id } = added.incident
  expect(added.incident).toMatchObject({ region: null, part: 'site', kind: 'reported', began_at: since, note: 'Down.' })
  expect(await svc('incidents', 'note', id, '--text', 'More at 15:00.')).toMatch(/^note +More at 15:00\.$/m)
  expect(await svc('incidents', 'list')).toMatch(
    new RegExp(`^INCIDENT .*\\n${id} +- +site +reported +[-\\d]+ [:\\d]+ UTC +- +More at 15:00\\.\\n$`),
  )
  expect(await svc('incidents', 'end', id, '--reason', 'it is over')).toMatch(/^ended +\d{4}-/m)
  const entries = await api.sql`select action, detail->>'reason' as reason from audit_entries order by id`
  expect(entries.map(({ action, reason }) => [action, reason])).toEqual([
    ['incident_added', null],
    ['incident_noted', null],
    ['incident_ended', 'it is over'],
  ])
})

test('an incident of a region is refused for one that does not exist, and while another is open', async () => {
  const add = (region: string) => run('add', '--part', 'relays', '--region', region, '--text', 'x')
  expect((await add('moon')).stderr).toContain('No region has this id')
  expect((await add('local')).code).toBe(0)
  const second = await add('local')
  expect([second.code === 0, second.stderr]).toEqual([false, expect.stringContaining('is open already')])
})

test('a command names what is missing or misspelt', async () => {
  expect((await run('add', '--part', 'sight', '--text', 'x')).stderr).toContain('Did you mean site?')
  expect((await run('add', '--part', 'site')).stderr).toContain("'--text <text>' not specified")
  expect((await run('note', 'x', '--text', 'x')).stderr).toContain('It is not an id')
})
