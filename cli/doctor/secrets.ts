/** The secrets of the service: how good they are, and whether the API and the database use the same ones. */
import { stat } from 'node:fs/promises'
import { createApiClient, operatorCredentials } from '../../client/client.ts'
import type { Database } from '../../db/connection.ts'
import { listSealedKeys, listStreamTokensByKey } from '../../db/operations/sealed-keys.ts'
import { openStreamToken } from '../../db/sealed-tokens.ts'
import type { Config } from '../../platform/config/config.ts'
import { adviseSecret } from '../../platform/config/variable-texts.ts'
import { secretsFile } from '../../platform/embedded/secrets.ts'
import { createSealing } from '../../platform/sealing.ts'
import { type Check, combine, type Finding, fail, notChecked, ok, type Problem, warn } from './check.ts'
import { type DatabaseAccess, withDatabase } from './postgres.ts'
import type { Target } from './target.ts'

const requestMillisMax = 5000
const dayMillis = 86_400_000
const ageDaysMax = 365
/** Random text of the required length has more different characters; patterns of a keyboard have fewer. */
const differentCharactersMin = 8

type NamedSecret = ReturnType<typeof listSecrets>[number]

export function secretChecks(target: Target, database: DatabaseAccess): Check[] {
  const { config, apiUrl } = target
  if (!config) return []
  return [
    { name: 'secrets', run: () => checkSecrets(listSecrets(config), target) },
    { name: 'encryption-key', run: () => withDatabase(database, (sql) => checkEncryptionKey(config, sql)) },
    { name: 'operator-password', run: () => checkOperatorPassword(config, apiUrl) },
  ]
}

const listSecrets = ({ jwt, relayAuthSecrets, oauthEncryptionKeys, billing, operatorPassword, apps }: Config) =>
  [
    { variable: 'SVC_JWT_SECRET', values: [jwt.secret] },
    { variable: 'SVC_JWT_SECRET_PREVIOUS', values: [jwt.previousSecret] },
    { variable: 'SVC_RELAY_AUTH_SECRET', values: relayAuthSecrets },
    { variable: 'OAUTH_ENCRYPTION_KEY', values: oauthEncryptionKeys.map(({ key }) => key) },
    { variable: 'SVC_BILLING_WEBHOOK_SECRET', values: billing.webhookSecrets },
    { variable: 'SVC_OPERATOR_PASSWORD', values: [operatorPassword] },
    { variable: 'SVC_OAUTH_SIGNING_KEYS', values: apps?.signingKeys.map(({ d }) => d) ?? [] },
  ].flatMap(({ variable, values }) => values.flatMap((value) => (value === undefined ? [] : [{ variable, value }])))

async function checkSecrets(
  secrets: readonly NamedSecret[],
  { environment, running, stack }: Target,
): Promise<Finding> {
  const variables = [...new Set(secrets.map(({ variable }) => variable))]
  const generated = running ? [secretsFile(stack.dataDir)] : []
  const files = [...variables.flatMap((name) => environment[`${name}_FILE`] ?? []), ...generated]
  const problems = await Promise.all([
    ...secrets.flatMap((secret) => findWeaknesses(secret, secrets)),
    ...files.map(findAgeProblem),
    ...generated.map(findModeProblem),
  ])
  return combine(`${variables.length} secrets, none of them weak, old or equal to another`, problems)
}

function findWeaknesses({ variable, value }: NamedSecret, secrets: readonly NamedSecret[]) {
  const equal = secrets.find((other) => other.value === value && other.variable !== variable)?.variable
  const isFirst = equal !== undefined && variable < equal
  return [
    isFirst && fail(`${variable} and ${equal} are equal`, `${adviseSecret(variable)} ${adviseSecret(equal)}`),
    new Set(value).size < differentCharactersMin && fail(`${variable} is easy to guess`, adviseSecret(variable)),
  ]
}

async function findAgeProblem(file: string): Promise<Problem | false> {
  const ageDays = Math.floor((Date.now() - (await stat(file)).mtimeMs) / dayMillis)
  const fix = 'Rotate the secret (docs/operating.md, Configuration).'
  return ageDays > ageDaysMax && warn(`${file} is ${ageDays} days old`, fix)
}

async function findModeProblem(file: string): Promise<Problem | false> {
  const mode = (await stat(file)).mode & 0o777
  const detail = `${file} can be read by other users (mode ${mode.toString(8)})`
  return (mode & 0o077) !== 0 && fail(detail, `chmod 600 ${file}`)
}

/** Whether the configured keys open what is stored. */
async function checkEncryptionKey({ oauthEncryptionKeys }: Config, sql: Database): Promise<Finding> {
  const sealing = createSealing(oauthEncryptionKeys)
  const [stored, tokens] = await Promise.all([listSealedKeys(sql), listStreamTokensByKey(sql)])
  const configured = new Set(oauthEncryptionKeys.map(({ id }) => id))
  const fix =
    'Set OAUTH_ENCRYPTION_KEY to the key that the service used before, or add it after the new one (docs/operating.md, Rotating the encryption key).'
  const unknown = stored.filter(({ keyId }) => !configured.has(keyId))
  const wrong = tokens.filter(({ userId, sealed }) => {
    try {
      openStreamToken(sealing, userId, { streamTokenSealed: sealed })
      return false
    } catch {
      return configured.has(sealed.split('.')[1] ?? '')
    }
  })
  return combine(
    `OAUTH_ENCRYPTION_KEY opens all ${stored.reduce((sum, { secrets }) => sum + secrets, 0)} stored secrets`,
    [
      ...unknown.map(({ keyId, secrets }) =>
        fail(`${secrets} stored secrets are encrypted with the key ${keyId}, which OAUTH_ENCRYPTION_KEY lacks`, fix),
      ),
      ...wrong.map(({ sealed }) =>
        fail(`the key ${sealed.split('.')[1]} in OAUTH_ENCRYPTION_KEY has another value than the stored secrets`, fix),
      ),
    ],
  )
}

/** Whether the running API accepts the configured password. A refusal is audited, like every failed sign-in. */
async function checkOperatorPassword({ operatorPassword }: Config, apiUrl: string | undefined): Promise<Finding> {
  if (operatorPassword === undefined) return ok('SVC_OPERATOR_PASSWORD is not set: the API has no operator routes')
  const client = createApiClient({
    baseUrl: apiUrl ?? '',
    headers: operatorCredentials(operatorPassword),
    timeoutMillis: requestMillisMax,
  })
  const status = await client.GET('/api/v1/admin/overview').then(
    ({ response }) => response.status,
    () => undefined,
  )
  if (status === undefined || status >= 500) return notChecked('the API does not answer')
  if (status === 200) return ok('the API accepts SVC_OPERATOR_PASSWORD')
  const fixes: Readonly<Record<number, string>> = {
    401: 'Set SVC_OPERATOR_PASSWORD to the password that the api was started with, or restart the api with the new one.',
    404: 'Set SVC_OPERATOR_PASSWORD for the api too, and restart it.',
    429: 'Wait a minute: too many wrong passwords came from this address.',
  }
  return fail(`the API refuses SVC_OPERATOR_PASSWORD (${status})`, fixes[status] ?? 'See the log of the api.')
}
