/** Background jobs of a worker that runs, when a test wants them. */
import type { Database } from '../../db/connection.ts'
import { eventually } from './relays.ts'

/** Runs a job now. Resolves after a run that began after the call, also if it failed. */
export async function runJob(sql: Database, job: string): Promise<void> {
  // A run that has begun may have looked already.
  const [due] = await eventually(
    () => sql<{ runs: string }[]>`
      update jobs set due_at = now() where name = ${job} and leased_until <= now() returning runs`,
    (rows) => rows.length === 1,
  )
  await eventually(
    () => sql`select from jobs where name = ${job} and runs > ${due?.runs ?? 0}`,
    (rows) => rows.length === 1,
  )
}

/** Keeps a job from running again. */
export const suspendJob = async (sql: Database, job: string): Promise<void> => {
  await eventually(
    async () => (await sql`update jobs set due_at = 'infinity' where name = ${job} and leased_until < now()`).count,
    (updated) => updated === 1,
  )
}
