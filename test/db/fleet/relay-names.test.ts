/** The names of relays: what may be written, and which instances a name may lead to. */
import { randomUUID } from 'node:crypto'
import { beforeEach, expect, test } from 'vitest'
import {
  beginWriting,
  type DueName,
  listDueNames,
  listNamedInstances,
  recordShownName,
} from '../../../db/fleet/relay-names.ts'
import { givePlan, startApi } from '../../support/api.ts'
import { writeActive, writeStopGrace, writeStopped } from '../../support/relay-rows.ts'
import type { OneSession } from '../../support/relays.ts'

const host = '198.51.100.7'
const api = await startApi()
const { sql } = api

beforeEach(async () => {
  for (const table of ['relay_names', 'relay_sessions', 'instances']) await sql`delete from ${sql(table)}`
})

/** An active session with an instance in a cloud, and the name that is due for it. */
async function givenDueName(): Promise<{ sessionId: string; due: DueName }> {
  const { userId, bearer } = await api.given.user()
  await givePlan(sql, userId)
  const headers = { 'Idempotency-Key': randomUUID() }
  const { body } = await api.post<OneSession>('/relay/start', {}, { bearer, headers })
  const sessionId = body.session.session_id
  await writeActive(sql, sessionId)
  await sql`
    insert into instances (instance_id, session_id, region, provider, host)
    values ('i-1', ${sessionId}, 'local', 'aws', ${host})`
  const [due] = await listDueNames(sql, 10)
  if (!due) throw new Error('no name is due')
  return { sessionId, due }
}

const isNamed = async () => (await listNamedInstances(sql, ['i-1'])).has('i-1')

async function stop(sessionId: string): Promise<void> {
  await writeStopGrace(sql, sessionId)
  await writeStopped(sql, sessionId)
}

test('an instance that ends while its name is written keeps its address until the name leads elsewhere', async () => {
  const { sessionId, due } = await givenDueName()
  expect(await beginWriting(sql, due)).toBe(true)
  await stop(sessionId)
  expect(await isNamed()).toBe(true)

  await recordShownName(sql, due, 'relays.example.net')
  expect(await isNamed()).toBe(true)
  const [after] = await listDueNames(sql, 10)
  expect(after).toMatchObject({ label: due.label, sessionId: null, v4: null })
  await recordShownName(sql, after as DueName, 'relays.example.net')
  expect(await isNamed()).toBe(false)
})

test('a name is written again when the worker died while it wrote it', async () => {
  const { sessionId, due } = await givenDueName()
  await beginWriting(sql, due)
  await stop(sessionId)
  expect(await listDueNames(sql, 10)).toMatchObject([{ label: due.label, v4: null }])
})

test('a name is not written for a session that has stopped, or has another address, meanwhile', async () => {
  const { sessionId, due } = await givenDueName()
  await sql`update relay_sessions set relay_host = '198.51.100.8' where id = ${sessionId}`
  expect(await beginWriting(sql, due)).toBe(false)
  await sql`update relay_sessions set relay_host = ${host} where id = ${sessionId}`
  await stop(sessionId)
  expect(await beginWriting(sql, due)).toBe(false)
  expect(await isNamed()).toBe(false)
})
