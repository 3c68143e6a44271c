/** How the commands of `svc` are defined. */
import { createInterface } from 'node:readline/promises'
import type { Argument, Command, Option } from 'commander'
import { type ApiResult, expectSuccess } from '../../client/api-error.ts'
import type { ApiClient } from '../../client/client.ts'
import { connect } from './connection.ts'
import { exitCodes, SvcError } from './exit-codes.ts'
import { destructiveOptions, type GlobalOptions } from './options.ts'
import { printJson } from './output.ts'

/** `svc sessions list` */
export const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()

interface Definition<Options> {
  readonly description: string
  /** The arguments of each example, without the command itself. By default none, and `--json`. */
  readonly examples?: readonly string[]
  readonly argument?: Argument
  readonly options?: readonly Option[]
  readonly run: (options: Options, argument: string) => Promise<void>
}

export function defineCommand<Options>(command: Command, definition: Definition<Options>): void {
  const { description, examples = ['', '--json'], argument, options = [], run } = definition
  if (argument) command.addArgument(argument)
  for (const option of options) command.addOption(option)
  const lines = () => examples.map((words) => `  $ ${pathOf(command)} ${words}`.trimEnd())
  command
    .description(description)
    .addHelpText('after', () => `\nExamples:\n${lines().join('\n')}`)
    .action(() => run(command.optsWithGlobals() as Options, command.processedArgs[0]))
}

/** Asks on a terminal, unless `--yes` is given; a script is not asked. Rejects when the answer is not yes. */
export async function confirm(question: string, { yes }: GlobalOptions): Promise<void> {
  if (yes || !process.stdin.isTTY) return
  // Standard output may be a pipe.
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const interrupted = new AbortController()
  terminal.once('close', () => interrupted.abort())
  try {
    const answer = await terminal.question(`${question} [y/N] `, { signal: interrupted.signal }).catch(() => '')
    if (!/^y(es)?$/i.test(answer.trim())) throw new SvcError(exitCodes.failed, 'Nothing was changed.')
  } finally {
    terminal.close()
  }
}

/** What a command shows or changes. */
export interface Subject {
  readonly argument: Argument
  /** Of the argument. */
  readonly example: string
  /** Finds the id of what the argument names. Without it the argument is the id. */
  readonly readId?: (api: ApiClient, name: string) => Promise<string>
}

interface RequestDefinition<Options, Reply> extends Omit<Definition<Options>, 'argument' | 'run'> {
  /** Its example is that of the command, unless there are others. */
  readonly subject?: Subject
  /** What is asked on a terminal before the request. Such a command requires a reason. */
  readonly question?: (name: string) => string
  readonly request: (api: ApiClient, id: string, options: Options) => Promise<ApiResult<Reply>>
  /** The start of the error when the request fails. */
  readonly failure?: (id: string) => string
  /** With `--json` the reply is printed as it is instead. */
  readonly print: (reply: Exclude<Reply, undefined>, id: string) => void
}

/** Defines a command that makes one request, and prints its reply. */
export function defineRequest<Options, Reply>(command: Command, definition: RequestDefinition<Options, Reply>): void {
  const { subject, question, options = [], request, failure, print, ...rest } = definition
  defineCommand<Options & GlobalOptions>(command, {
    ...(subject ? { argument: subject.argument, examples: [subject.example] } : {}),
    ...rest,
    options: question ? [...destructiveOptions, ...options] : options,
    run: async (options, name) => {
      const api = await connect(options)
      const id = subject?.readId ? await subject.readId(api, name) : name
      if (question) await confirm(question(name), options)
      const reply = expectSuccess(await request(api, id, options), failure?.(id))
      if (options.json) printJson(reply)
      else print(reply, id)
    },
  })
}

/** The parameters of a request for one account, session or event. */
export const byId = (id: string) => ({ params: { path: { id } } })

/** Without the values that are undefined. */
export const defined = <Values extends object>(values: Values) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Values]?: Exclude<Values[Name], undefined>
  }
