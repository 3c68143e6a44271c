/** The job that records incidents, on the rows that the service measures. The clock is moved by moving the rows. */
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { incidentJobs } from '../../../activities/worker/incident-jobs.ts'
import { connectPostgres } from '../../../db/connection.ts'
import { readConfig } from '../../../platform/config/config.ts'
import { createLog } from '../../../platform/log.ts'
import { createDatabase } from '../../support/api.ts'
import { atEnd } from '../../support/at-end.ts'
import { testEnvironment } from '../../support/environment.ts'

const database = await createDatabase()
const sql = connectPostgres(database.url, 6)
atEnd(async () => {
  await sql.end()
  await database.drop()
})
const regions = ['eu', 'us']
const config = readConfig({
  ...testEnvironment(),
  SVC_REGIONS: JSON.stringify(regions.map((region) => ({ region, display_name: region, provider: 'local' }))),
})

const measure = async (only = regions): Promise<void> => {
  const configured = { ...config, regions: config.regions.filter(({ region }) => only.includes(region)) }
  for (const job of incidentJobs({ config: configured, sql, log: createLog('worker', 'fatal') })) await job.run()
}

const seconds = (count: number) => sql`make_interval(secs => ${count})`

/** Lets time pass in which nothing was measured. */
async function pass(count: number): Promise<void> {
  await sql`update incident_watch set measured_at = measured_at - ${seconds(count)}`
  await sql`update incidents set began_at = began_at - ${seconds(count)}, confirmed_at = confirmed_at - ${seconds(count)},
    fine_since = fine_since - ${seconds(count)}, ended_at = ended_at - ${seconds(count)}`
}

/** Lets a minute pass, again and again, and measures after each. */
async function measureFor(minutes: number, prepare: () => Promise<unknown> = confirmAll): Promise<void> {
  for (let minute = 0; minute < minutes; minute += 1) {
    await pass(60)
    await prepare()
    await measure()
  }
}

const confirmAll = () => sql`update presence set seen_at = now()`

beforeEach(async () => {
  for (const table of ['incidents', 'users', 'billing_events', 'provider_checks', 'report_paths', 'regions'])
    await sql`delete from ${sql(table)}`
  await sql`update incident_watch set measured_at = now()`
  await sql`update presence set since = now() - interval '1 day', seen_at = now()`
  await sql`update api_probe set reached_at = null, failing_since = null`
})

const list = async (): Promise<string[]> =>
  (
    await sql<{ text: string }[]>`
      select concat_ws(' ', region, part, kind, case when ended_at is null then 'open' else 'ended' end) as text
      from incidents where confirmed_at is not null order by 1`
  ).map(({ text }) => text)

async function addUser(): Promise<string> {
  const id = randomUUID()
  await sql`
    insert into users (id, stream_token_sealed, stream_token_hash) values (${id}, 'x', sha256(${id}::text::bytea))`
  return id
}

async function addStart(userId: string, outcome: 'active' | 'failed' | 'stopped', region = 'eu'): Promise<string> {
  const id = randomUUID()
  await sql`
    insert into relay_sessions (id, user_id, connection_id, region, command_initiator)
    values (${id}, ${userId}, ${id.slice(0, 8)}, ${region}, 'user')`
  if (outcome === 'active')
    await sql`update relay_sessions set state = 'active', reason = 'relay_ready', active_at = now(), instance_id = ${id} where id = ${id}`
  else {
    const reason = outcome === 'failed' ? 'provision_failed' : 'stop_requested'
    await sql`update relay_sessions set state = 'stopped', reason = ${reason}, stopped_at = now() where id = ${id}`
  }
  return id
}

const addUsers = (count: number) => Promise.all(Array.from({ length: count }, addUser))

describe('relay starts', () => {
  test('of three accounts that fail are an incident of their region after a minute, and end with the failures', async () => {
    for (const userId of await addUsers(3)) await addStart(userId, 'failed')
    await measure()
    expect(await list()).toEqual([])
    await measureFor(1)
    expect(await list()).toEqual(['eu starts starts_failing open'])
    await sql`delete from relay_sessions`
    await measureFor(5)
    expect(await list()).toEqual(['eu starts starts_failing open'])
    await measureFor(2)
    expect(await list()).toEqual(['eu starts starts_failing ended'])
  })

  test('of a single account that fail again and again are none, nor are those that most accounts succeed with', async () => {
    const [impatient = '', ...others] = await addUsers(10)
    for (let times = 0; times < 8; times += 1) await addStart(impatient, 'failed')
    for (const userId of others.slice(0, 3)) await addStart(userId, 'failed')
    for (const userId of others.slice(3)) await addStart(userId, 'active')
    await measure()
    await measureFor(2)
    expect(await list()).toEqual([])
  })

  test('that their owners stop are none', async () => {
    for (const userId of await addUsers(5)) await addStart(userId, 'stopped')
    await measure()
    await measureFor(2)
    expect(await list()).toEqual([])
  })
})

describe('a region', () => {
  test('is closed while it is drained, and its incident ends with the region when it is removed', async () => {
    await sql`insert into regions (region, drained_at) values ('us', now() - interval '10 minutes')`
    await measure()
    expect(await list()).toEqual(['us starts region_closed open'])
    await measure(['eu'])
    for (let minute = 0; minute < 6; minute += 1) {
      await pass(60)
      await measure(['eu'])
    }
    expect(await list()).toEqual(['us starts region_closed ended'])
  })

  test('is closed when its provider fails two checks', async () => {
    const check = (error: string | null) => sql`
      insert into provider_checks as c (region, failing_since, error) values ('eu', now(), 'no')
      on conflict (region) do update set error = ${error}, checked_at = now(),
        failing_since = case when ${error}::text is not null then c.failing_since end`
    await check('no')
    await measure()
    await measureFor(2)
    expect(await list()).toEqual([])
    await sql`update provider_checks set failing_since = failing_since - interval '10 minutes'`
    await check('no')
    await measure()
    expect(await list()).toEqual(['eu starts region_closed open'])
    await check(null)
    await measureFor(6)
    expect(await list()).toEqual(['eu starts region_closed ended'])
  })

  test('whose relays have no way to the API is out, and the others are not', async () => {
    for (const userId of await addUsers(2)) await addStart(userId, 'active')
    await sql`insert into report_paths (region, seen_at) values ('eu', now() - interval '5 minutes'), ('us', now())`
    await sql`update api_probe set reached_at = now() - interval '5 minutes', failing_since = now() - interval '5 minutes'`
    await measure()
    expect(await list()).toEqual(['eu relays part_outage open'])
  })

  test('whose relays fail for most of its accounts is out', async () => {
    for (const userId of await addUsers(4)) {
      const id = await addStart(userId, 'active')
      await sql`
        insert into relay_replacements (session_id, binding, instance_id, replaced_by, cause, failed_at, last_report_at)
        values (${id}, 1, 'a', 'b', 'relay_gone', now() - interval '2 minutes', now())`
    }
    await measure()
    expect(await list()).toEqual(['eu relays part_outage open'])
  })

  test('most of whose relays fall silent together is out', async () => {
    for (const userId of await addUsers(6)) await addStart(userId, 'active')
    await sql`update relay_sessions set active_at = now() - interval '5 minutes'`
    await measure()
    await measureFor(1)
    expect(await list()).toEqual(['eu relays part_outage open'])
  })
})

describe('the service', () => {
  test('is out when no api process works or its address does not answer, which is no fault of a region', async () => {
    await addStart(await addUser(), 'active')
    await sql`insert into report_paths (region, seen_at) select unnest(${regions}::text[]), now() - interval '5 minutes'`
    await sql`update api_probe set reached_at = now() - interval '5 minutes', failing_since = now() - interval '4 minutes'`
    await measure()
    expect(await list()).toEqual(['api part_outage open'])
    await sql`update api_probe set failing_since = null`
    await sql`update report_paths set seen_at = now()`
    await sql`update presence set seen_at = now() - interval '2 minutes' where role = 'api'`
    await measure()
    const confirmPaths = async () => {
      await confirmAll()
      await sql`update report_paths set seen_at = now()`
    }
    await measureFor(6, confirmPaths)
    expect(await list()).toEqual(['api part_outage ended'])
  })

  test('that did not run has an incident of that time', async () => {
    await pass(600)
    await sql`update presence set since = now() where role = 'api'`
    await measure()
    expect(await list()).toEqual(['api part_outage open', 'control part_outage open'])
    await measureFor(6)
    const [{ duration } = { duration: 0 }] = await sql<{ duration: number }[]>`
      select extract(epoch from ended_at - began_at)::float8 as duration from incidents where part = 'control'`
    expect(duration).toBeGreaterThan(600)
    expect(duration).toBeLessThan(700)
  })

  test('delivers mails and applies billing events late when those of three accounts wait', async () => {
    const users = await addUsers(3)
    for (const userId of users) {
      await sql`
        insert into outbox_messages (user_id, channel, kind, created_at, attempts)
        values (${userId}, 'email', 'reset_password', now() - interval '20 minutes', 3)`
      await sql`
        insert into billing_events (provider, event_key, type, user_id, status, next_attempt_at, received_at)
        values ('stripe', ${userId}, 'x', ${userId}, 'unresolved', now(), now() - interval '20 minutes')`
    }
    await measure()
    expect(await list()).toEqual(['billing part_outage open', 'sign_in part_outage open'])
  })
})

describe('runs of the job', () => {
  test('at the same time open a single incident', async () => {
    await sql`insert into regions (region, drained_at) values ('us', now() - interval '10 minutes')`
    await Promise.all(Array.from({ length: 5 }, () => measure()))
    expect(await list()).toEqual(['us starts region_closed open'])
  })

  test('that die leave nothing, and the next one records it', async () => {
    await sql`insert into regions (region, drained_at) values ('us', now() - interval '10 minutes')`
    await sql`alter table incident_watch add constraint dies check (measured_at is null) not valid`
    onTestFinished(async () => void (await sql`alter table incident_watch drop constraint if exists dies`))
    await expect(measure()).rejects.toThrow('dies')
    expect(await sql`select from incidents`).toHaveLength(0)
    await sql`alter table incident_watch drop constraint dies`
    await measure()
    await measure()
    expect(await list()).toEqual(['us starts region_closed open'])
  })

  test('leave what operators reported to them', async () => {
    await sql`insert into incidents (part, kind, began_at, confirmed_at) values ('site', 'reported', now(), now())`
    await measureFor(7)
    expect(await list()).toEqual(['site reported open'])
  })
})
