/** The commands that list what the API has, page by page. */
import type { Command, Option } from 'commander'
import { type ApiResult, expectSuccess } from '../../client/api-error.ts'
import type { Reply } from '../../client/reply.ts'
import { readAccountId } from './accounts.ts'
import { defineCommand } from './commands.ts'
import { connect } from './connection.ts'
import { usageError } from './exit-codes.ts'
import { allOption, cursorOption, type GlobalOptions } from './options.ts'
import { type Column, printJson, printRemark, printTable } from './output.ts'

type Page<Path extends string> = Reply<'get', Path>
type ItemOf<Path extends string, Key extends keyof Page<Path>> = Page<Path>[Key] extends readonly (infer Item)[]
  ? Item
  : never

interface List<Path extends string, Key extends keyof Page<Path>> {
  readonly description: string
  readonly examples?: readonly string[]
  readonly path: Path
  /** The field of the reply that holds the items. */
  readonly key: Key
  readonly columns: readonly Column<ItemOf<Path, Key>>[]
  /** Options by the parameter of the API. One that the command has already keeps its place in the help. */
  readonly filters?: Readonly<Record<string, Option>>
  /** Printed when no filter is given, where one has to be. */
  readonly missingFilter?: string
  /** Parameters that every request has. */
  readonly parameters?: Readonly<Record<string, string>>
}

interface ListOptions extends GlobalOptions {
  readonly all?: true
  readonly cursor?: string
}

/** Prints one page, or all of them with `--all`; as JSON, the pages are one reply. */
export function defineList<Path extends string, Key extends keyof Page<Path> & string>(
  command: Command,
  { path, key, columns, filters = {}, missingFilter, parameters = {}, ...texts }: List<Path, Key>,
): void {
  const added = Object.values(filters).filter((option) => !command.options.includes(option))
  defineCommand<ListOptions & Readonly<Record<string, string>>>(command, {
    ...texts,
    options: [cursorOption, allOption, ...added],
    run: async (options) => {
      const given = Object.entries(filters).flatMap(([parameter, option]) => {
        const value = options[option.attributeName()]
        return value === undefined ? [] : [[parameter, value] as const]
      })
      if (missingFilter !== undefined && given.length === 0) throw usageError(missingFilter)
      const api = await connect(options)
      const query: Record<string, string> = { ...parameters }
      for (const [parameter, value] of given)
        query[parameter] = parameter === 'user_id' ? await readAccountId(api, value) : value
      const read = api.GET as (path: string, init: object) => Promise<ApiResult<Page<Path> & { next_cursor?: string }>>
      const items: ItemOf<Path, Key>[] = []
      let next = options.cursor
      do {
        const cursor = next === undefined ? {} : { cursor: next }
        const page = expectSuccess(await read(`/api/v1${path}`, { params: { query: { ...query, ...cursor } } }))
        items.push(...(page[key] as ItemOf<Path, Key>[]))
        next = page.next_cursor ?? undefined
      } while (options.all && next !== undefined)
      if (options.json) return printJson({ [key]: items, next_cursor: next ?? null })
      printTable(columns, items)
      if (next !== undefined) printRemark(`\nThere are more. Add --cursor ${next} for the next page, or --all.`)
    },
  })
}
