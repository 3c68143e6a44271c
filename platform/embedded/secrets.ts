/** Secrets of the local stack that no variable sets. They are generated once and stored in the data folder. */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { writeFileAtomically } from '../atomic-file.ts'

const StackSecrets = z.object({
  SVC_JWT_SECRET: z.string().min(1),
  SVC_RELAY_AUTH_SECRET: z.string().min(1),
  OAUTH_ENCRYPTION_KEY: z.string().min(1),
  SVC_OPERATOR_PASSWORD: z.string().min(1),
  SVC_BILLING_WEBHOOK_SECRET: z.string().min(1),
  SVC_OBS_PROVIDER_ID: z.string().min(1),
  SVC_OAUTH_SIGNING_KEYS: z.string().min(1),
  demo: z.object({ email: z.string().min(1), password: z.string().min(1) }),
})

export type StackSecrets = z.infer<typeof StackSecrets>

/** The secrets that variables set. */
export interface ConfiguredSecrets {
  readonly SVC_JWT_SECRET: string | undefined
  readonly SVC_RELAY_AUTH_SECRET: string | undefined
  readonly OAUTH_ENCRYPTION_KEY: string | undefined
  readonly SVC_OPERATOR_PASSWORD: string | undefined
  readonly SVC_BILLING_WEBHOOK_SECRET: string | undefined
  readonly SVC_OBS_PROVIDER_ID: string | undefined
  readonly SVC_OAUTH_SIGNING_KEYS: string | undefined
}

export const secretsFile = (dataDir: string): string => join(dataDir, 'secrets.json')

const random = (bytes: number): string => randomBytes(bytes).toString('base64url')

export const generateSecrets = (): StackSecrets => ({
  SVC_JWT_SECRET: random(48),
  SVC_RELAY_AUTH_SECRET: random(48),
  OAUTH_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
  SVC_OPERATOR_PASSWORD: random(18),
  SVC_BILLING_WEBHOOK_SECRET: `whsec_${randomBytes(32).toString('base64')}`,
  // Not secret, but different in each installation.
  SVC_OBS_PROVIDER_ID: `local-${randomBytes(8).toString('hex')}`,
  SVC_OAUTH_SIGNING_KEYS: generateSigningKey(),
  demo: { email: 'demo@example.com', password: random(15) },
})

/** A private key on the curve P-256, as `SVC_OAUTH_SIGNING_KEYS` has it. */
export const generateSigningKey = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' })
    .privateKey.export({ format: 'der', type: 'pkcs8' })
    .toString('base64')

/**
 * Returns the configured secrets, and for the others those in the file. Generates missing ones and adds them to the
 * file.
 */
export async function provideSecrets(dataDir: string, configured: ConfiguredSecrets): Promise<StackSecrets> {
  const stored = await readStoredSecrets(dataDir)
  const secrets: StackSecrets = { ...generateSecrets(), ...stored }
  if (Object.keys(stored).length < Object.keys(secrets).length) {
    await mkdir(dataDir, { recursive: true })
    await writeFileAtomically(secretsFile(dataDir), `${JSON.stringify(secrets, null, 2)}\n`)
  }
  const overrides = Object.entries(configured).filter(([, value]) => value !== undefined)
  return { ...secrets, ...(Object.fromEntries(overrides) as Partial<StackSecrets>) }
}

/** The secrets in the file; empty when there is no file. Throws when the file cannot be read or parsed. */
export async function readStoredSecrets(dataDir: string): Promise<Partial<StackSecrets>> {
  const file = secretsFile(dataDir)
  try {
    return StackSecrets.partial().parse(JSON.parse(await readFile(file, 'utf8'))) as Partial<StackSecrets>
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    const reason = error instanceof z.ZodError ? z.prettifyError(error) : (error as Error).message
    throw new Error(`${file} can't be used (${reason}). Repair it, or remove it to generate new secrets.`)
  }
}
