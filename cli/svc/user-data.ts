/** `svc users export` and `svc users erase`: what data protection law lets the owner of an account ask for. */
import { writeFile } from 'node:fs/promises'
import { type Command, Option } from 'commander'
import { expectSuccess } from '../../client/api-error.ts'
import { account, readAccountId } from './accounts.ts'
import { byId, confirm, defineCommand } from './commands.ts'
import { connect } from './connection.ts'
import { usageError } from './exit-codes.ts'
import { destructiveOptions, type GlobalOptions, type ReasonOptions } from './options.ts'
import { printJson, printLine, printRemark } from './output.ts'

export function addUserDataCommands(users: Command): void {
  const { argument } = account
  defineCommand(users.command('export'), {
    description: 'export everything that is stored about an account, as JSON and without secrets',
    examples: ['streamer@example.com --output streamer.json', 'streamer@example.com | jq .tables.relay_sessions'],
    argument,
    options: [new Option('--output <file>', 'write to this new file, which only its owner can read')],
    run: exportUser,
  })
  defineCommand(users.command('erase'), {
    description: 'erase an account for good: ends its relays, cancels its subscriptions, then deletes its rows',
    examples: [
      'streamer@example.com --email streamer@example.com --reason "ticket 4711"',
      '0b9a6f3e-41c7-4d58-8e2b-7c1d5f90a364 --no-email --reason "ticket 4712"',
    ],
    argument,
    options: [
      ...destructiveOptions,
      new Option('--email <address>', 'the address of the account once more, which confirms the choice'),
      new Option('--no-email', 'confirms that the account has no address'),
    ],
    run: eraseUser,
  })
}

async function exportUser(options: GlobalOptions & { readonly output?: string }, name: string): Promise<void> {
  const api = await connect(options)
  const id = await readAccountId(api, name)
  const exported = expectSuccess(await api.GET('/api/v1/admin/users/{id}/export', byId(id)))
  if (options.output === undefined) return printJson(exported)
  await writeNewFile(options.output, `${JSON.stringify(exported, null, 2)}\n`)
  printRemark(`The data of ${id} is in ${options.output}.`)
}

async function writeNewFile(file: string, content: string): Promise<void> {
  try {
    await writeFile(file, content, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    throw usageError(`--output cannot be written: ${(error as Error).message}`)
  }
}

interface EraseOptions extends GlobalOptions, ReasonOptions {
  /** False with `--no-email`. Commander's default with both flags is true. */
  readonly email: string | boolean
}

async function eraseUser({ email, reason, ...options }: EraseOptions, name: string): Promise<void> {
  if (email === true) throw usageError('--email ADDRESS is required, or --no-email for an account without an address.')
  const api = await connect(options)
  const id = await readAccountId(api, name)
  await confirm(`Erase the account ${name} for good? This cannot be taken back.`, options)
  const body = { email: email === false ? null : email, reason }
  const reply = expectSuccess(await api.POST('/api/v1/admin/users/{id}/erase', { ...byId(id), body }))
  if (options.json) return printJson(reply)
  printLine(reply.state)
  if (reply.state === 'scheduled')
    printRemark(`The account is erased when its relays and subscriptions have ended. Check with: svc users show ${id}`)
}
