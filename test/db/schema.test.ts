/** The generated schema, compared with the migrations. */
import { readFile } from 'node:fs/promises'
import { expect, onTestFinished, test } from 'vitest'
import { connectPostgres } from '../../db/connection.ts'
import { migrate } from '../../db/migrations.ts'
import { schemaText } from '../../db/schema.ts'
import { createEmptyDatabase } from '../support/api.ts'

test('db/schema.sql is the result of the migrations', async () => {
  const database = await createEmptyDatabase()
  const sql = connectPostgres(database.url, 1)
  onTestFinished(async () => {
    await sql.end({ timeout: 5 })
    await database.drop()
  })
  await migrate(sql)
  const committed = await readFile(new URL('../../db/schema.sql', import.meta.url), 'utf8')
  expect(await schemaText(sql), 'db/schema.sql is out of date: npm run generate').toBe(committed)
})
