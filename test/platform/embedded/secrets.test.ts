/** The generated secrets of a local start. */
import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { isStandardWebhookSecret, obsProviderId, signingKeys } from '../../../platform/config/values.ts'
import { provideSecrets, readStoredSecrets, secretsFile } from '../../../platform/embedded/secrets.ts'
import { temporaryFolder } from '../../support/folders.ts'

const none = {
  SVC_JWT_SECRET: undefined,
  SVC_RELAY_AUTH_SECRET: undefined,
  OAUTH_ENCRYPTION_KEY: undefined,
  SVC_OPERATOR_PASSWORD: undefined,
  SVC_BILLING_WEBHOOK_SECRET: undefined,
  SVC_OBS_PROVIDER_ID: undefined,
  SVC_OAUTH_SIGNING_KEYS: undefined,
}

test('secrets are generated once and stay the same at later starts', async () => {
  const dir = await temporaryFolder()
  const first = await provideSecrets(dir, none)
  expect(await provideSecrets(dir, none)).toEqual(first)
  expect(new Set([first.SVC_JWT_SECRET, first.SVC_RELAY_AUTH_SECRET, first.SVC_OPERATOR_PASSWORD]).size).toBe(3)
  expect(isStandardWebhookSecret(first.SVC_BILLING_WEBHOOK_SECRET)).toBe(true)
  expect(Buffer.byteLength(first.SVC_JWT_SECRET)).toBeGreaterThanOrEqual(32)
  expect(obsProviderId.parse(first.SVC_OBS_PROVIDER_ID)).toBe(first.SVC_OBS_PROVIDER_ID)
  expect(signingKeys.parse(first.SVC_OAUTH_SIGNING_KEYS)).toHaveLength(1)
})

test('only the owner can read the file', async () => {
  const dir = await temporaryFolder()
  await provideSecrets(dir, none)
  expect((await stat(secretsFile(dir))).mode & 0o777).toBe(0o600)
})

test('a configured secret has precedence and is not stored', async () => {
  const dir = await temporaryFolder()
  const stored = await provideSecrets(dir, none)
  const configured = 'configured by the operator of this machine'
  expect(await provideSecrets(dir, { ...none, SVC_JWT_SECRET: configured })).toEqual({
    ...stored,
    SVC_JWT_SECRET: configured,
  })
  expect(await readFile(secretsFile(dir), 'utf8')).not.toContain(configured)
})

test('a secret missing from an older file is added without changing the others', async () => {
  const dir = await temporaryFolder()
  await writeFile(secretsFile(dir), JSON.stringify({ SVC_JWT_SECRET: 'the old one' }))
  const secrets = await provideSecrets(dir, none)
  expect(secrets.SVC_JWT_SECRET).toBe('the old one')
  expect(await readStoredSecrets(dir)).toEqual(secrets)
})

test('an invalid file is reported and not changed', async () => {
  const dir = await temporaryFolder()
  await writeFile(secretsFile(dir), '{"SVC_JWT')
  await expect(provideSecrets(dir, none)).rejects.toThrow(`${secretsFile(dir)} can't be used`)
  expect(await readFile(secretsFile(dir), 'utf8')).toBe('{"SVC_JWT')
})

test('a file that other users can read is closed to them when it is rewritten', async () => {
  const dir = await temporaryFolder()
  await writeFile(secretsFile(dir), '{}')
  await chmod(secretsFile(dir), 0o644)
  await provideSecrets(dir, none)
  expect((await stat(secretsFile(dir))).mode & 0o777).toBe(0o600)
})
