/** How the commands of `svc` are defined. */
import type { Argument, Command, Option } from 'commander'
import { type ApiResult, expectSuccess } from '../../client/api-error.ts'
import type { ApiClient } from '../../client/client.ts'
import { confirm } from './confirmation.ts'
import { connect } from './connection.ts'
import type { ConfirmableOptions } from './options.ts'
import { printJson } from './output.ts'

/** `svc sessions list` */
export const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()

interface Definition<Options> {
  readonly description: string
  /** The arguments of each example, without the command itself. */
  readonly examples: readonly string[]
  readonly argument?: Argument
  readonly options?: readonly Option[]
  readonly run: (options: Options, argument: string) => Promise<void>
}

export function defineCommand<Options>(command: Command, definition: Definition<Options>): void {
  const { description, examples, argument, options = [], run } = definition
  if (argument) command.addArgument(argument)
  for (const option of options) command.addOption(option)
  const lines = () => examples.map((words) => `  $ ${pathOf(command)} ${words}`.trimEnd())
  command
    .description(description)
    .addHelpText('after', () => `\nExamples:\n${lines().join('\n')}`)
    .action(() => run(command.optsWithGlobals() as Options, command.processedArgs[0]))
}

/** What a command shows or changes. */
export interface Subject {
  readonly argument: Argument
  /** Finds the id of what the argument names. Without it the argument is the id. */
  readonly readId?: (api: ApiClient, name: string) => Promise<string>
}

interface RequestDefinition<Options, Reply> extends Omit<Definition<Options>, 'argument' | 'run'> {
  readonly subject?: Subject
  /** What is asked on a terminal before the request. */
  readonly question?: (name: string) => string
  readonly request: (api: ApiClient, id: string, options: Options) => Promise<ApiResult<Reply>>
  /** The start of the error when the request fails. */
  readonly failure?: (id: string) => string
  /** With `--json` the reply is printed as it is instead. */
  readonly print: (reply: Exclude<Reply, undefined>, id: string) => void
}

/** Defines a command that makes one request, and prints its reply. */
export function defineRequest<Options, Reply>(command: Command, definition: RequestDefinition<Options, Reply>): void {
  const { subject, question, request, failure, print, ...rest } = definition
  defineCommand<Options & ConfirmableOptions>(command, {
    ...rest,
    ...(subject ? { argument: subject.argument } : {}),
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
