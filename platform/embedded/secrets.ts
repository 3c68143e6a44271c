/** Secrets that nobody gave: made once, kept in the data folder for the owner's eyes only. */
import { randomBytes } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { writeWhole } from './whole-file.ts'

const Kept = z.object({
  SVC_JWT_SECRET: z.string().min(1),
  SVC_RELAY_AUTH_SECRET: z.string().min(1),
  OAUTH_ENCRYPTION_KEY: z.string().min(1),
  SVC_OPERATOR_PASSWORD: z.string().min(1),
  SVC_BILLING_WEBHOOK_SECRET: z.string().min(1),
  demo: z.object({ email: z.string().min(1), password: z.string().min(1) }),
})

export type StackSecrets = z.infer<typeof Kept>

export interface GivenSecrets {
  readonly SVC_JWT_SECRET: string | undefined
  readonly SVC_RELAY_AUTH_SECRET: string | undefined
  readonly OAUTH_ENCRYPTION_KEY: string | undefined
  readonly SVC_OPERATOR_PASSWORD: string | undefined
  readonly SVC_BILLING_WEBHOOK_SECRET: string | undefined
}

export const secretsFile = (dataDir: string): string => join(dataDir, 'secrets.json')

const random = (bytes: number): string => randomBytes(bytes).toString('base64url')

/** What was given, the rest from the file, and what is in neither made and written there (0600). */
export async function provideSecrets(dataDir: string, given: GivenSecrets): Promise<StackSecrets> {
  const kept = await readKeptSecrets(dataDir)
  const whole: StackSecrets = {
    SVC_JWT_SECRET: random(48),
    SVC_RELAY_AUTH_SECRET: random(48),
    OAUTH_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    SVC_OPERATOR_PASSWORD: random(18),
    SVC_BILLING_WEBHOOK_SECRET: `whsec_${randomBytes(32).toString('base64')}`,
    demo: { email: 'demo@example.com', password: random(15) },
    ...kept,
  }
  if (Object.keys(kept).length < Object.keys(whole).length) {
    await mkdir(dataDir, { recursive: true })
    await writeWhole(secretsFile(dataDir), `${JSON.stringify(whole, null, 2)}\n`)
  }
  const said = Object.entries(given).filter(([, value]) => value !== undefined)
  return { ...whole, ...(Object.fromEntries(said) as Partial<StackSecrets>) }
}

/** What the file holds so far; nothing when there is none. Throws when it can't be read or isn't what was written. */
export async function readKeptSecrets(dataDir: string): Promise<Partial<StackSecrets>> {
  const file = secretsFile(dataDir)
  try {
    return Kept.partial().parse(JSON.parse(await readFile(file, 'utf8'))) as Partial<StackSecrets>
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    const why = error instanceof z.ZodError ? z.prettifyError(error) : (error as Error).message
    throw new Error(`${file} can't be used (${why}). Mend it, or remove it and all secrets are made anew.`)
  }
}
