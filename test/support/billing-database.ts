/** A database for one test file, without the API. */
import { randomBytes } from 'node:crypto'
import { connectPostgres, type Database } from '../../db/connection.ts'
import { insertUserFromProvider } from '../../db/identity/users.ts'
import { migrate } from '../../db/migrations.ts'
import { createSealing } from '../../platform/sealing.ts'
import { createDatabase } from './api.ts'
import { atEnd } from './at-end.ts'

const sealing = createSealing([{ id: 'test', key: randomBytes(32).toString('base64') }])

export async function startBillingDatabase(): Promise<Database> {
  const database = await createDatabase()
  const sql = connectPostgres(database.url, 4)
  atEnd(async () => {
    await sql.end({ timeout: 5 })
    await database.drop()
  })
  await migrate(sql)
  return sql
}

/** Creates an account on the free tier. Returns its id. */
export async function newAccount(sql: Database): Promise<string> {
  const id = await insertUserFromProvider(sql, sealing, { email: null, streamToken: randomBytes(4).toString('hex') })
  if (!id) throw new Error('the stream token was taken')
  return id
}
