/** Replies from rows: a row has the fields of its view in camelCase, and times as dates. */
import type { z } from 'zod'

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name

type Stored<Value> = Value | (string extends Exclude<Value, null> ? Date : never)

type RowOf<View> = { readonly [Name in keyof View & string as CamelCase<Name>]: Stored<View[Name]> }

/** The fields of the view, from the row's fields of the same names. Other fields of the row are left out. */
export function present<View extends z.ZodObject>(view: View, row: RowOf<z.infer<View>>): z.infer<View> {
  const values: Readonly<Record<string, unknown>> = row
  const reply: Record<string, unknown> = {}
  for (const [name, field] of fieldsOf(view)) {
    const value = values[field]
    reply[name] = value instanceof Date ? value.toISOString() : value
  }
  return reply as z.infer<View>
}

/** The names of the view's fields with those of the row's. Read once for each view. */
const knownFields = new WeakMap<z.ZodObject, readonly (readonly [string, string])[]>()

function fieldsOf(view: z.ZodObject) {
  const known = knownFields.get(view)
  if (known) return known
  const fields = Object.keys(view.shape).map((name) => [name, camelCase(name)] as const)
  knownFields.set(view, fields)
  return fields
}

const camelCase = (name: string): string => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

interface Page<Row, Item> {
  readonly size: number
  readonly presentRow: (row: Row) => Item
  /** What the request for the next page names of the last row. */
  readonly cursorOf: (row: Row) => string
}

/** @param rows one more than the page has if there is a next page. */
export function pageOf<Row, Item>(rows: readonly Row[], { size, presentRow, cursorOf }: Page<Row, Item>) {
  const page = rows.slice(0, size)
  const last = page.at(-1)
  return { items: page.map(presentRow), next_cursor: last && rows.length > size ? cursorOf(last) : null }
}
