/**
 * The masked address of the account that a row concerns, for operators. It is read by the statement that reads the row.
 */
import type { Fragment } from 'postgres'
import { maskAccountEmail } from '../domain/identity/masked-email.ts'
import type { Sql } from './connection.ts'

export interface WithMaskedEmail {
  /** Null without an account, and for an account without an address. */
  readonly maskedEmail: string | null
}

/** The row as a statement with {@link emailColumn} returns it. */
export type WithEmail<Row extends WithMaskedEmail> = Omit<Row, 'maskedEmail'> & { readonly email: string | null }

/** The column `email`: one look-up by the primary key for each row of the result. */
export const emailColumn = (sql: Sql, userId: Fragment) =>
  sql`(select account.email from users account where account.id = ${userId}) as email`

export const maskEmails = <Row extends WithMaskedEmail>(rows: readonly WithEmail<Row>[]): Row[] =>
  rows.map(({ email, ...row }) => ({ ...row, maskedEmail: maskAccountEmail(email) }) as unknown as Row)
