/** The filter of a list of the console, and the links to its other pages. Both work with the address alone. */
import type { ComponentChildren } from 'preact'

/** The values of a filter by the names of its parameters; an empty value filters nothing. */
export type Filter = Readonly<Record<string, string>>

/** Reads these parameters and the cursor from the address. */
export const readFilter = <Name extends string>(
  query: URLSearchParams,
  names: readonly Name[],
): Readonly<Record<Name | 'cursor', string>> => {
  const entries = [...names, 'cursor' as const].map((name) => [name, query.get(name)?.trim() ?? ''])
  return Object.fromEntries(entries) as Record<Name | 'cursor', string>
}

/** @returns the path with the parameters that have a value. */
export function pathWith(path: string, filter: Filter): string {
  const query = new URLSearchParams(Object.entries(filter).filter(([, value]) => value !== ''))
  return query.size === 0 ? path : `${path}?${query}`
}

interface FilterFormProps {
  readonly action: string
  readonly children: ComponentChildren
}

export const FilterForm = ({ action, children }: FilterFormProps) => (
  <form class="card filter" method="get" action={action}>
    {children}
    <button class="second" type="submit">
      Filter
    </button>
  </form>
)

interface ChoiceProps {
  readonly name: string
  readonly label: string
  readonly value: string
  /** Text by value. */
  readonly options: Readonly<Record<string, string>>
}

export const Choice = ({ name, label, value, options }: ChoiceProps) => (
  <div class="field">
    <label for={`filter-${name}`}>{label}</label>
    <select id={`filter-${name}`} name={name}>
      {Object.entries(options).map(([option, text]) => (
        <option key={option} value={option} selected={option === value}>
          {text}
        </option>
      ))}
    </select>
  </div>
)

interface TextFilterProps {
  readonly name: string
  readonly label: string
  readonly value: string
}

export const TextFilter = ({ name, label, value }: TextFilterProps) => (
  <div class="field">
    <label for={`filter-${name}`}>{label}</label>
    <input id={`filter-${name}`} name={name} value={value} maxlength={254} autocomplete="off" spellcheck={false} />
  </div>
)

interface PagerProps {
  readonly path: string
  readonly filter: Filter
  readonly nextCursor: string | null | undefined
}

export const Pager = ({ path, filter, nextCursor }: PagerProps) =>
  nextCursor || filter.cursor ? (
    <p class="row">
      {filter.cursor ? (
        <a class="button second" href={pathWith(path, { ...filter, cursor: '' })}>
          First page
        </a>
      ) : null}
      {nextCursor ? (
        <a class="button second" rel="next" href={pathWith(path, { ...filter, cursor: nextCursor })}>
          Next page
        </a>
      ) : null}
    </p>
  ) : null
