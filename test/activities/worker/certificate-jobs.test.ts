/** The job that reads the certificates of the service as clients do. */
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer as createPlainServer } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { checkCertificate } from '../../../activities/worker/certificate-checks.ts'
import { certificateJobs } from '../../../activities/worker/certificate-jobs.ts'
import { startApi } from '../../support/api.ts'
import { temporaryFolder } from '../../support/folders.ts'
import { localhostCertificate, localhostKey } from '../../support/localhost-certificate.ts'
import { readMetrics } from '../../support/metrics.ts'

const api = await startApi()
const endOfCertificate = Date.UTC(2126, 9, 29, 15, 36, 58)

/** A server with the certificate of localhost. */
async function startTlsServer(): Promise<URL> {
  const server = createServer({ cert: localhostCertificate, key: localhostKey }).listen(0, 'localhost')
  server.on('tlsClientError', () => {})
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => void server.close())
  return new URL(`https://localhost:${(server.address() as AddressInfo).port}`)
}

async function runJob(apiUrl: string, siteUrl: string): Promise<void> {
  const { sql, log } = api.services
  for (const job of certificateJobs({ config: { apiUrl, siteUrl }, sql, log })) await job.run()
}

test('a certificate that clients accept has no error', async () => {
  const url = await startTlsServer()
  const authority = join(await temporaryFolder(), 'authority.pem')
  await writeFile(authority, localhostCertificate)
  const program = `
    import { checkCertificate } from './activities/worker/certificate-checks.ts'
    console.log(JSON.stringify(await checkCertificate(new URL('${url}'))))`
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', program],
    { env: { PATH: '/usr/bin:/bin', NODE_EXTRA_CA_CERTS: authority } },
  )
  expect(JSON.parse(stdout)).toEqual({ expiresAt: new Date(endOfCertificate).toISOString(), error: null })
})

test('the metrics show the end of a certificate that clients refuse, until the address has no TLS any more', async () => {
  const { href } = await startTlsServer()
  await runJob(href, 'http://localhost:8081')
  const before = await readMetrics(api)
  expect(before('svc_certificate_expiry_timestamp_seconds{endpoint="api"}')).toBe(endOfCertificate / 1000)
  expect(before('svc_certificate_ok{endpoint="api"}')).toBe(0)
  expect(before('svc_certificate_ok{endpoint="site"}')).toBeUndefined()

  await runJob('http://localhost:8080', href)
  const after = await readMetrics(api)
  expect(after('svc_certificate_ok{endpoint="api"}')).toBeUndefined()
  expect(after('svc_certificate_ok{endpoint="site"}')).toBe(0)
})

test('an address that does not answer keeps the end of the last certificate', async () => {
  const { href } = await startTlsServer()
  await runJob(href, href)
  await runJob('https://localhost:1', href)
  const metric = await readMetrics(api)
  expect(metric('svc_certificate_expiry_timestamp_seconds{endpoint="api"}')).toBe(endOfCertificate / 1000)
  const [row] = await api.sql`select error from certificate_checks where endpoint = 'api'`
  expect(row?.error).toContain('ECONNREFUSED')
})

test('a server that accepts the connection and never answers is given up', async () => {
  const server = createPlainServer().listen(0, 'localhost')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => void server.close())
  const url = new URL(`https://localhost:${(server.address() as AddressInfo).port}`)
  expect(await checkCertificate(url, 200)).toEqual({ expiresAt: null, error: 'no answer within 0.2 s' })
})
