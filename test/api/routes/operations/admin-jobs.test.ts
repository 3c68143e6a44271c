/** The operators' list of background jobs. */
import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { finishJob, insertMissingJobs, leaseJob } from '../../../../db/operations/jobs.ts'
import { startApi, statusAndCode, type TestApi } from '../../../support/api.ts'
import { operator, operatorPassword } from '../../../support/relays.ts'

interface Jobs {
  readonly jobs: readonly Record<string, unknown>[]
  readonly next_cursor: string | null
}

let api: TestApi
beforeAll(async () => {
  api = await startApi({ SVC_OPERATOR_PASSWORD: operatorPassword })
})

const list = async (query = '') => (await api.get<Jobs>(`/admin/jobs${query}`, { headers: operator })).body
const jobNamed = async (name: string) => (await list()).jobs.find((job) => job.name === name)

test('a job that has not run yet is listed as due, without a result and without a lease', async () => {
  await insertMissingJobs(api.sql, ['new_job'])
  expect(await jobNamed('new_job')).toEqual({
    name: 'new_job',
    runs: 0,
    failures: 0,
    due_at: expect.stringMatching(/Z$/),
    last_started_at: null,
    last_success_at: null,
    last_error: null,
    last_duration_seconds: null,
    leased_by: null,
    leased_until: null,
  })
})

test('a job that runs shows the worker that holds its lease, and its results once it has finished', async () => {
  const workerId = randomUUID()
  await insertMissingJobs(api.sql, ['job'])
  await leaseJob(api.sql, 'job', workerId)
  expect(await jobNamed('job')).toMatchObject({
    leased_by: workerId,
    leased_until: expect.stringMatching(/Z$/),
    runs: 0,
  })
  await finishJob(api.sql, 'job', workerId, { durationSeconds: 1.5, error: null, nextInSeconds: 0 })
  expect(await jobNamed('job')).toMatchObject({
    runs: 1,
    failures: 0,
    last_error: null,
    last_duration_seconds: 1.5,
    leased_by: null,
    leased_until: null,
    last_success_at: expect.stringMatching(/Z$/),
  })
  await leaseJob(api.sql, 'job', workerId)
  await finishJob(api.sql, 'job', workerId, { durationSeconds: 2, error: 'no answer', nextInSeconds: 3600 })
  const failed = await jobNamed('job')
  expect(failed).toMatchObject({ runs: 2, failures: 1, last_error: 'no answer', last_duration_seconds: 2 })
  expect(Date.parse(String(failed?.due_at))).toBeGreaterThan(Date.now() + 3_000_000)
})

test('a lease that a dead worker left is shown until it ends, and not afterwards', async () => {
  await insertMissingJobs(api.sql, ['left_job'])
  await leaseJob(api.sql, 'left_job', randomUUID())
  await api.sql`update jobs set leased_until = now() - interval '1 second' where name = 'left_job'`
  expect(await jobNamed('left_job')).toMatchObject({ leased_by: null, leased_until: null })
})

test('jobs are listed by name, a page at a time', async () => {
  await insertMissingJobs(
    api.sql,
    Array.from({ length: 150 }, (_, index) => `page_${String(index).padStart(3, '0')}`),
  )
  const first = await list()
  const second = await list(`?cursor=${first.next_cursor}`)
  const names = [...first.jobs, ...second.jobs].map((job) => String(job.name))
  expect([first.jobs.length, second.next_cursor]).toEqual([100, null])
  expect(names).toEqual(names.toSorted())
  expect(names.filter((name) => name.startsWith('page_'))).toHaveLength(150)
})

test('only operators see them', async () => {
  expect(statusAndCode(await api.get('/admin/jobs'))).toEqual([401, 'invalid_operator'])
  const closed = await startApi()
  expect(statusAndCode(await closed.get('/admin/jobs', { headers: operator }))).toEqual([404, 'not_found'])
})
