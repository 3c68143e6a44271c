/** Finds the API and the operator password of a command. */
import { readFile } from 'node:fs/promises'
import { type ApiClient, createApiClient, operatorCredentials } from '../../client/client.ts'
import { readStackConfig, type StackConfig } from '../../platform/config/stack.ts'
import { readStoredSecrets } from '../../platform/embedded/secrets.ts'
import { readRunningStack } from '../stack-state.ts'
import { exitCodes, SvcError, usageError } from './exit-codes.ts'
import type { GlobalOptions } from './options.ts'

/** Operations on workflows may take their whole 5 s, twice. */
const timeoutMillis = 20_000

/**
 * A client with the operator's rights. The address comes from `--api`, `SVC_API_URL` or the stack that runs in the data
 * folder; the password from `--password-file`, `SVC_OPERATOR_PASSWORD` or the generated secrets in the data folder.
 * Throws `SvcError` when one of them is missing, and `ConfigError`.
 */
export async function connect(options: GlobalOptions): Promise<ApiClient> {
  const stack = readStackConfig()
  const baseUrl = options.api ?? stack.apiUrl ?? (await readRunningStack(stack.dataDir))?.api
  if (!baseUrl) throw noStackError(stack)
  if (!URL.canParse(baseUrl) || !/^https?:$/.test(new URL(baseUrl).protocol))
    throw usageError(`The address of the API is not an http:// or https:// URL: ${baseUrl}`)
  const password = await findPassword(options, stack)
  const api = createApiClient({ baseUrl, headers: operatorCredentials(password), timeoutMillis })
  refuseMissingRoutes(api)
  return api
}

const noStackError = ({ dataDir }: StackConfig): SvcError =>
  new SvcError(
    exitCodes.unreachable,
    `No stack is running in ${dataDir}. Start it first (npm start), or name the API with --api URL or SVC_API_URL.`,
  )

async function findPassword({ passwordFile }: GlobalOptions, { dataDir, secrets }: StackConfig): Promise<string> {
  const password =
    passwordFile === undefined
      ? (secrets.SVC_OPERATOR_PASSWORD ?? (await readStoredSecrets(dataDir)).SVC_OPERATOR_PASSWORD)
      : await readPasswordFile(passwordFile)
  if (password) return password
  throw new SvcError(
    exitCodes.notAuthorised,
    'The operator password is missing. Set SVC_OPERATOR_PASSWORD or SVC_OPERATOR_PASSWORD_FILE, or pass --password-file FILE.',
  )
}

async function readPasswordFile(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).replace(/\r?\n$/, '')
  } catch (error) {
    throw usageError(`--password-file cannot be read: ${(error as Error).message}`)
  }
}

/**
 * Without a configured password the API has no routes for operators, which looks as if an account or a session did not
 * exist.
 */
function refuseMissingRoutes(api: ApiClient): void {
  api.use({
    onResponse: async ({ response, schemaPath }) => {
      if (response.status !== 404 || schemaPath === probedPath) return
      const probed = await api.GET(probedPath)
      if (probed.response.status === 404)
        throw new SvcError(
          exitCodes.notAuthorised,
          'The API has no routes for operators. Set SVC_OPERATOR_PASSWORD for the api, or correct --api.',
        )
    },
  })
}

const probedPath = '/api/v1/admin/regions'
