/** `svc users export` and `svc users erase`: what data protection law lets the owner of an account ask for. */
import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { expectSuccess } from '../../client/api-error.ts'
import { readAccountId } from './accounts.ts'
import { confirm } from './confirmation.ts'
import { connect } from './connection.ts'
import { addExamples } from './examples.ts'
import { usageError } from './exit-codes.ts'
import { addDestructiveOptions, type ChangeOptions, type GlobalOptions, parseAccount } from './options.ts'
import { printJson, printLine, printRemark } from './output.ts'

const account = ['<account>', 'email address or id of the account', parseAccount] as const

export function addUserDataCommands(users: Command): void {
  addExamples(users.command('export').argument(...account), [
    'streamer@example.com --output streamer.json',
    'streamer@example.com | jq .tables.relay_sessions',
  ])
    .option('--output <file>', 'write to this new file, which only its owner can read')
    .description('export everything that is stored about an account, as JSON and without secrets')
    .action((text: string, _, command: Command) => exportUser(text, command.optsWithGlobals()))
  addExamples(addDestructiveOptions(users.command('erase').argument(...account)), [
    'streamer@example.com --email streamer@example.com --reason "ticket 4711"',
    '0b9a6f3e-41c7-4d58-8e2b-7c1d5f90a364 --no-email --reason "ticket 4712"',
  ])
    .option('--email <address>', 'the address of the account once more, which confirms the choice')
    .option('--no-email', 'confirms that the account has no address')
    .description('erase an account for good: ends its relays, cancels its subscriptions, then deletes its rows')
    .action((text: string, _, command: Command) => eraseUser(text, command.optsWithGlobals()))
}

interface ExportOptions extends GlobalOptions {
  readonly output?: string
}

async function exportUser(text: string, options: ExportOptions): Promise<void> {
  const api = await connect(options)
  const path = { id: await readAccountId(api, text) }
  const exported = expectSuccess(await api.GET('/api/v1/admin/users/{id}/export', { params: { path } }))
  if (options.output === undefined) return printJson(exported)
  await writeNewFile(options.output, `${JSON.stringify(exported, null, 2)}\n`)
  printRemark(`The data of ${path.id} is in ${options.output}.`)
}

async function writeNewFile(file: string, content: string): Promise<void> {
  try {
    await writeFile(file, content, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    throw usageError(`--output cannot be written: ${(error as Error).message}`)
  }
}

interface EraseOptions extends ChangeOptions {
  /** False with `--no-email`. Commander's default with both flags is true. */
  readonly email: string | boolean
  readonly reason: string
}

async function eraseUser(text: string, { email, reason, ...options }: EraseOptions): Promise<void> {
  if (email === true) throw usageError('--email ADDRESS is required, or --no-email for an account without an address.')
  const api = await connect(options)
  const path = { id: await readAccountId(api, text) }
  await confirm(`Erase the account ${text} for good? This cannot be taken back.`, options)
  const body = { email: typeof email === 'string' ? email : null, reason }
  const reply = expectSuccess(await api.POST('/api/v1/admin/users/{id}/erase', { params: { path }, body }))
  if (options.json) return printJson(reply)
  printLine(reply.state)
  if (reply.state === 'scheduled')
    printRemark(
      `The account is erased when its relays and subscriptions have ended. Check with: svc users show ${path.id}`,
    )
}
