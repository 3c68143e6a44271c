/**
 * Transactions with fewer round trips than `sql.begin`: `begin` is sent together with the first statements, and
 * `commit` together with the last ones (docs/decisions/0052).
 */
import type { Database, Sql } from './connection.ts'

/** A statement that is sent when it is executed or awaited. */
interface Statement extends PromiseLike<unknown> {
  execute(): unknown
}

type RowsOf<Statements extends readonly Statement[]> = {
  [Index in keyof Statements]: Awaited<Statements[Index]>
}

/**
 * Sends statements and the commit in this order and returns the rows of each statement. Nothing is committed when one
 * of them fails. No statement may follow.
 */
export type CommitWith = <Statements extends readonly Statement[]>(
  ...statements: Statements
) => Promise<RowsOf<Statements>>

/**
 * Runs a transaction and rolls it back when `run` throws. It is committed at the end unless `run` has called
 * `commitWith`. The first statements of `run` are sent before it is known whether the transaction has begun, and so
 * must do no harm outside of one.
 */
export async function pipelinedTransaction<Result>(
  sql: Database,
  run: (tx: Sql, commitWith: CommitWith) => Promise<Result>,
): Promise<Result> {
  const reserved = await sql.reserve()
  const tx: Sql = reserved
  const { begin_query: settings } = sql.options
  const begun = tx.unsafe(settings ? `begin; ${settings}` : 'begin').execute()
  let committed: Promise<void> | undefined
  const commit = (): Promise<void> => {
    committed ??= requireCommit(tx.unsafe('commit', [], { last: true }).execute())
    return committed
  }
  const commitWith: CommitWith = async (...statements) => {
    await begun
    for (const statement of statements) statement.execute()
    const [rows] = await Promise.all([Promise.all(statements), commit()])
    return rows as never
  }
  try {
    const [result] = await Promise.all([run(tx, commitWith), begun])
    await commit()
    return result
  } catch (error) {
    // Without a connection there is no transaction any more. The driver destroys a connection that is still inside of
    // one.
    await (committed ?? tx.unsafe('rollback', [], { last: true })).catch(() => {})
    throw error
  } finally {
    reserved.release()
  }
}

/** Postgres answers the commit of a transaction with a failed statement with a rollback, which is no error. */
async function requireCommit(statement: PromiseLike<{ readonly command: string }>): Promise<void> {
  const { command } = await statement
  if (command !== 'COMMIT') throw new Error(`the transaction ended with ${command}`)
}
