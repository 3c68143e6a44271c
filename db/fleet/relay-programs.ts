/** Programs of relays, which instances in a cloud download: those of the builds whose workers started last. */
import type { Sql } from '../connection.ts'

export interface RelayProgram {
  /** Contains the digest of the code. */
  readonly fileName: string
  readonly code: Buffer
}

const programsMax = 5

/**
 * Stores a program that a worker which starts will name to its instances, and deletes those that have not been used for
 * longest.
 */
export const storeRelayProgram = async (sql: Sql, { fileName, code }: RelayProgram): Promise<void> => {
  await sql`
    with stored as (
      insert into relay_programs (file_name, code) values (${fileName}, ${code})
      on conflict (file_name) do update set last_used_at = now()
    )
    delete from relay_programs where file_name in (
      select file_name from relay_programs where file_name <> ${fileName}
      order by last_used_at desc, file_name offset ${programsMax - 1})`
}

/** At most a few, with all of their code. */
export const listRelayPrograms = async (sql: Sql): Promise<RelayProgram[]> =>
  sql<RelayProgram[]>`select file_name, code from relay_programs`
