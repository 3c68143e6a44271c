import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { isStandardWebhookSecret } from '../../../platform/config/values.ts'
import { provideSecrets, readKeptSecrets, secretsFile } from '../../../platform/embedded/secrets.ts'
import { temporaryFolder } from '../../support/folders.ts'

const none = {
  SVC_JWT_SECRET: undefined,
  SVC_RELAY_AUTH_SECRET: undefined,
  OAUTH_ENCRYPTION_KEY: undefined,
  SVC_OPERATOR_PASSWORD: undefined,
  SVC_BILLING_WEBHOOK_SECRET: undefined,
}

test('secrets are made once and stay the same from start to start', async () => {
  const dir = await temporaryFolder()
  const first = await provideSecrets(dir, none)
  expect(await provideSecrets(dir, none)).toEqual(first)
  expect(new Set([first.SVC_JWT_SECRET, first.SVC_RELAY_AUTH_SECRET, first.SVC_OPERATOR_PASSWORD]).size).toBe(3)
  expect(isStandardWebhookSecret(first.SVC_BILLING_WEBHOOK_SECRET)).toBe(true)
  expect(Buffer.byteLength(first.SVC_JWT_SECRET)).toBeGreaterThanOrEqual(32)
})

test('only the owner may read them', async () => {
  const dir = await temporaryFolder()
  await provideSecrets(dir, none)
  expect((await stat(secretsFile(dir))).mode & 0o777).toBe(0o600)
})

test('what the environment gives wins and is not written down', async () => {
  const dir = await temporaryFolder()
  const kept = await provideSecrets(dir, none)
  const given = 'given by the operator of this very machine'
  expect(await provideSecrets(dir, { ...none, SVC_JWT_SECRET: given })).toEqual({ ...kept, SVC_JWT_SECRET: given })
  expect(await readFile(secretsFile(dir), 'utf8')).not.toContain(given)
})

test('a secret missing from an older file is added without changing the others', async () => {
  const dir = await temporaryFolder()
  await writeFile(secretsFile(dir), JSON.stringify({ SVC_JWT_SECRET: 'the old one' }))
  const secrets = await provideSecrets(dir, none)
  expect(secrets.SVC_JWT_SECRET).toBe('the old one')
  expect(await readKeptSecrets(dir)).toEqual(secrets)
})

test('a broken file is named and left alone', async () => {
  const dir = await temporaryFolder()
  await writeFile(secretsFile(dir), '{"SVC_JWT')
  await expect(provideSecrets(dir, none)).rejects.toThrow(`${secretsFile(dir)} can't be used`)
  expect(await readFile(secretsFile(dir), 'utf8')).toBe('{"SVC_JWT')
})

test('a file that others could read until now is closed to them when it is written anew', async () => {
  const dir = await temporaryFolder()
  await writeFile(secretsFile(dir), '{}')
  await chmod(secretsFile(dir), 0o644)
  await provideSecrets(dir, none)
  expect((await stat(secretsFile(dir))).mode & 0o777).toBe(0o600)
})
