/**
 * The job that checks the certificates of the public addresses, since a proxy that does not renew them stays unnoticed.
 */

import type { Sql } from '../../db/connection.ts'
import {
  type CertificateEndpoint,
  deleteOtherCertificateChecks,
  recordCertificateCheck,
} from '../../db/operations/certificate-checks.ts'
import type { Config } from '../../platform/config/config.ts'
import type { Logger } from '../../platform/log.ts'
import { checkCertificate } from './certificate-checks.ts'
import type { Job } from './jobs.ts'

interface Deps {
  readonly config: Pick<Config, 'apiUrl' | 'siteUrl'>
  readonly sql: Sql
  readonly log: Logger
}

export const certificateJobs = (deps: Deps): readonly Job[] => [
  { name: 'check_certificates', everySeconds: 600, runSecondsMax: 60, run: () => checkCertificates(deps) },
]

async function checkCertificates({ config, sql, log }: Deps): Promise<void> {
  const all: [CertificateEndpoint, URL][] = [
    ['api', new URL(config.apiUrl)],
    ['site', new URL(config.siteUrl)],
  ]
  const withTls = all.filter(([, url]) => url.protocol === 'https:')
  const check = async ([endpoint, url]: (typeof all)[number]) => {
    const result = await checkCertificate(url)
    await recordCertificateCheck(sql, endpoint, result)
    if (result.error !== null)
      log.error(
        { endpoint, host: url.host, problem: result.error },
        'clients cannot connect: a certificate check failed',
      )
  }
  await Promise.all(withTls.map(check))
  await deleteOtherCertificateChecks(
    sql,
    withTls.map(([endpoint]) => endpoint),
  )
}
