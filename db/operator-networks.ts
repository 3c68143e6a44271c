/** Networks that operators work from: those where the operator password was right lately. */
import { first, type Sql } from './connection.ts'

/** How long a network counts as an operator's after its last use. */
export const knownDays = 30

export interface OperatorNetwork {
  /** Its last use was noted more than an hour ago. */
  readonly isStale: boolean
}

/** Undefined when no operator used the network lately. */
export const findOperatorNetwork = async (sql: Sql, network: string): Promise<OperatorNetwork | undefined> =>
  first(
    await sql<OperatorNetwork[]>`
      select last_used_at < now() - interval '1 hour' as is_stale from operator_networks
      where network = ${network} and last_used_at > now() - make_interval(days => ${knownDays})`,
  )

export const touchOperatorNetwork = async (sql: Sql, network: string): Promise<void> => {
  await sql`
    insert into operator_networks (network) values (${network})
    on conflict (network) do update set last_used_at = now()`
}
