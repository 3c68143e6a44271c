/** The doctor's check of the age of secrets. */
import { utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { examine } from '../../../cli/doctor/checks.ts'
import { readTarget } from '../../../cli/doctor/target.ts'
import { testEnvironment } from '../../support/environment.ts'
import { temporaryFolder } from '../../support/folders.ts'

test('a secret in a file that is older than a year is a warning', async () => {
  const file = join(await temporaryFolder(), 'jwt')
  const { SVC_JWT_SECRET = '', ...rest } = testEnvironment()
  await writeFile(file, SVC_JWT_SECRET)
  const longAgo = new Date(Date.now() - 400 * 86_400_000)
  await utimes(file, longAgo, longAgo)
  const target = await readTarget({ ...rest, SVC_JWT_SECRET_FILE: file, SVC_DATA_DIR: await temporaryFolder() })
  const secrets = (await examine(target)).find(({ name }) => name === 'secrets')
  expect(secrets).toMatchObject({ status: 'warn', detail: `${file} is 400 days old` })
})
