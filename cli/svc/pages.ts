/** Lists of the API, page by page. */
import type { ListOptions } from './options.ts'
import { type Column, printJson, printRemark, printTable } from './output.ts'

type Page<Key extends string, Item> = { readonly [name in Key]: readonly Item[] } & {
  readonly next_cursor?: string | null
}

export interface List<Key extends string, Item> {
  /** The field of the reply that holds the items. */
  readonly key: Key
  readonly columns: readonly Column<Item>[]
  readonly readPage: (cursor: { readonly cursor?: string }) => Promise<Page<Key, Item>>
}

/** Prints one page, or all of them with `--all`; as JSON, the pages are one reply. */
export async function printList<Key extends string, Item>(
  { key, columns, readPage }: List<Key, Item>,
  { all, cursor, json }: ListOptions,
): Promise<void> {
  const items: Item[] = []
  let next = cursor
  do {
    const page = await readPage(next === undefined ? {} : { cursor: next })
    items.push(...page[key])
    next = page.next_cursor ?? undefined
  } while (all && next !== undefined)
  if (json) return printJson({ [key]: items, next_cursor: next ?? null })
  printTable(columns, items)
  if (next !== undefined) printRemark(`\nThere are more. Add --cursor ${next} for the next page, or --all.`)
}
