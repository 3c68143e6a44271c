/** The doctor's check of the legal pages. */
import { expect, test } from 'vitest'
import { checkLegalPages } from '../../../cli/doctor/legal.ts'
import { readConfig } from '../../../platform/config/config.ts'
import { testEnvironment } from '../../support/environment.ts'

const legal = {
  SVC_TERMS_URL: 'https://example.com/terms',
  SVC_TERMS_VERSION: '2026-06-19',
  SVC_PRIVACY_URL: 'https://example.com/privacy',
  SVC_IMPRINT_URL: 'https://example.com/imprint',
  SVC_REFUND_URL: 'https://example.com/refunds',
  SVC_ABUSE_CONTACT: 'abuse@example.com',
}
const publicSite = { SVC_SITE_URL: 'https://relays.example.com' }

const check = (variables: Readonly<Record<string, string>>) =>
  checkLegalPages(readConfig({ ...testEnvironment(), ...variables }))

test('a public site without legal pages is a warning that names each of them', async () => {
  const missing = await check(publicSite)
  expect(missing.status).toBe('warn')
  for (const name of Object.keys(legal).filter((key) => key !== 'SVC_TERMS_VERSION'))
    expect(missing.detail).toContain(name)
  const { SVC_IMPRINT_URL: _, ...others } = legal
  const { status, detail } = await check({ ...publicSite, ...others })
  expect([status, detail]).toEqual(['warn', 'https://relays.example.com is public and lacks SVC_IMPRINT_URL'])
  expect((await check({ ...publicSite, ...legal })).status).toBe('ok')
})

test('a site on this machine needs no legal pages', async () => {
  for (const SVC_SITE_URL of ['http://localhost:8081', 'http://127.0.0.1:8081', 'http://[::1]:8081'])
    expect((await check({ SVC_SITE_URL })).status).toBe('ok')
})
