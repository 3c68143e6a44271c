/** What people read about a variable: its default, its range and its description, in Markdown and as plain text. */
import { z } from 'zod'
import { composeVariables } from './compose-variables.ts'
import { localVariables } from './stack.ts'
import type { VariableDescription } from './variable.ts'
import { variables } from './variables.ts'

const descriptions: Readonly<Record<string, VariableDescription | undefined>> = {
  ...localVariables,
  ...composeVariables,
  ...variables,
}

/** The description with its range and the command that generates a value, in Markdown. */
export const describeVariable = (name: string, { text, isSecret, generate, ...variable }: VariableDescription) =>
  [
    ...(isSecret ? ['*Secret.*'] : []),
    text,
    ...rangeOf(name, variable),
    ...(generate ? [`Generate it: \`${generate}\`.`] : []),
  ].join(' ')

/** What the doctor says of a variable that is wrong, in one line; undefined for an unknown one. */
export function adviseVariable(name: string): string | undefined {
  const variable = descriptions[name]
  if (!variable) return undefined
  const readers = variable.readers.length === 0 ? '' : ` (read by ${variable.readers.join(', ')})`
  const value = variable.default ?? defaultOf(variable)
  const byDefault = value === undefined ? '' : ` By default: ${toPlain(value)}${unitOf(name)}.`
  return `${name}${readers}: ${toPlain(describeVariable(name, variable))}${byDefault}`
}

/** How a secret gets a new value, in one line. */
export function adviseSecret(name: string): string {
  const generate = descriptions[name]?.generate
  return generate === undefined ? `Replace ${name}.` : `Generate a new ${name}: ${generate}.`
}

/** Markdown without its marks; links become the paths of their pages in the repository. */
export const toPlain = (markdown: string): string =>
  markdown
    .replace(/\[([^\]]+)\]\(([\w./-]*)(#[\w-]+)?\)/g, (_, label: string, page: string) =>
      label === page ? `docs/${page}` : `${label} (docs/${page || 'operating.md'})`,
    )
    .replace(/`|\*\*/g, '')
    .replace(/\*(\S[^*]*)\*/g, '$1')

export const isRequired = (variable: VariableDescription): boolean =>
  'schema' in variable && !(variable.schema as z.ZodType).safeParse(undefined).success

export const unitOf = (name: string): string =>
  /_SECONDS$/.test(name) ? ' s' : /_DAYS$/.test(name) ? ' days' : /_HOURS_/.test(name) ? ' hours' : ''

/** The default of the programs, as text; undefined for none. */
export const defaultOf = (variable: object): string | undefined =>
  'schema' in variable ? schemaDefault(variable.schema as z.core.$ZodType) : undefined

interface SchemaDefinition {
  readonly type: string
  readonly defaultValue?: unknown
  readonly in?: z.core.$ZodType
  readonly innerType?: z.core.$ZodType
}

function schemaDefault(schema: z.core.$ZodType | undefined): string | undefined {
  if (!schema) return undefined
  const def: SchemaDefinition = schema._zod.def
  if (def.type === 'default') return String(def.defaultValue) || undefined
  return def.type === 'pipe' || def.type === 'optional' ? schemaDefault(def.in ?? def.innerType) : undefined
}

function rangeOf(name: string, variable: object): string[] {
  const schema = 'schema' in variable ? innermost(variable.schema as z.core.$ZodType) : undefined
  return schema instanceof z.ZodNumber ? [`From ${schema.minValue} to ${schema.maxValue}${unitOf(name)}.`] : []
}

const innermost = (schema: z.core.$ZodType): z.core.$ZodType => {
  const { innerType }: SchemaDefinition = schema._zod.def
  return innerType ? innermost(innerType) : schema
}
