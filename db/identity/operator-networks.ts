/** Networks from which an operator has signed in recently. */
import { operatorNetworkDays } from '../../domain/identity/lifetimes.ts'
import { first, type Sql } from '../connection.ts'

interface OperatorNetwork {
  /** The recorded last use is more than an hour old. */
  readonly isStale: boolean
}

/** Undefined if no operator has used the network recently. */
export const findOperatorNetwork = async (sql: Sql, network: string): Promise<OperatorNetwork | undefined> =>
  first(sql<OperatorNetwork[]>`
    select last_used_at < now() - interval '1 hour' as is_stale from operator_networks
    where network = ${network} and last_used_at > now() - make_interval(days => ${operatorNetworkDays})`)

export const touchOperatorNetwork = async (sql: Sql, network: string): Promise<void> => {
  await sql`
    insert into operator_networks (network) values (${network})
    on conflict (network) do update set last_used_at = now()`
}
