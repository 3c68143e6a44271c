/** The last check of the certificate of each public address. */
import type { Sql } from '../connection.ts'

export type CertificateEndpoint = 'api' | 'site'

export interface CertificateCheck {
  /** When the certificate ends; null when none was received. */
  readonly expiresAt: Date | null
  /** Why clients refuse the certificate, or why none was received; null after a success. */
  readonly error: string | null
}

/** A check without a certificate keeps the end of the previous one. */
export const recordCertificateCheck = async (
  sql: Sql,
  endpoint: CertificateEndpoint,
  { expiresAt, error }: CertificateCheck,
): Promise<void> => {
  await sql`
    insert into certificate_checks as c (endpoint, expires_at, error) values (${endpoint}, ${expiresAt}, ${error})
    on conflict (endpoint) do update set checked_at = now(), error = excluded.error,
      expires_at = coalesce(excluded.expires_at, c.expires_at)`
}

/** Deletes the checks of addresses that have no TLS any more. */
export const deleteOtherCertificateChecks = async (
  sql: Sql,
  endpoints: readonly CertificateEndpoint[],
): Promise<void> => {
  await sql`delete from certificate_checks where endpoint <> all (${endpoints}::text[])`
}

export const listCertificateChecks = async (
  sql: Sql,
): Promise<(CertificateCheck & { readonly endpoint: CertificateEndpoint })[]> =>
  sql<(CertificateCheck & { readonly endpoint: CertificateEndpoint })[]>`
    select endpoint, expires_at, error from certificate_checks order by endpoint`
