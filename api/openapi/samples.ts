/** Examples made from JSON Schemas: the same value for the same schema at any time. */
import { componentExamples } from './example-objects.ts'
import { sampleValues } from './sample-values.ts'
import { componentNameOf, type JsonSchema, type SchemaComponents } from './schemas.ts'

interface Source {
  readonly components: SchemaComponents
  /** Realistic values by the names of properties. */
  readonly values: Readonly<Record<string, unknown>>
}

/** Values of requests that differ from those of replies. */
const requestValues: Readonly<Record<string, unknown>> = {
  ...sampleValues,
  reason: 'Requested by the owner of the account',
}

const texts = ['text', 'default', 'local', '1042', 'https://example.com/page', 'streamer@example.com', 'sub_1042']
const sampleId = '5d3f0c62-8a1e-4b7d-9c05-2f6e1a7b4d90'
const sampleTime = '2026-08-01T18:30:00.000Z'
const sampleCount = 3

/** @param name the property that has the value; it selects a realistic one. */
export const sampleOfReply = (schema: JsonSchema, components: SchemaComponents, name = ''): unknown =>
  sampleOf(schema, { components, values: sampleValues }, name)

export const sampleOfRequest = (schema: JsonSchema, components: SchemaComponents, name = ''): unknown =>
  sampleOf(schema, { components, values: requestValues }, name)

/** An example with the required properties that it lacks, such as those that its schema has got later. */
export function completeReply(value: unknown, schema: JsonSchema, components: SchemaComponents): unknown {
  const { $ref, anyOf, items, properties } = schema
  if (typeof $ref === 'string') return completeReply(value, components[componentNameOf($ref)] ?? {}, components)
  if (Array.isArray(anyOf)) {
    const choices = (anyOf as JsonSchema[]).filter((one) => one.type !== 'null')
    return value !== null && choices.length === 1 ? completeReply(value, choices[0] ?? {}, components) : value
  }
  if (Array.isArray(value)) return value.map((one) => completeReply(one, (items ?? {}) as JsonSchema, components))
  if (typeof value !== 'object' || value === null) return value
  const known = (properties ?? {}) as Record<string, JsonSchema>
  const missing = ((schema.required ?? []) as string[]).filter((key) => !(key in value))
  return Object.fromEntries([
    ...Object.entries(value).map(([key, inner]) => [key, completeReply(inner, known[key] ?? {}, components)]),
    ...missing.map((key) => [key, sampleOfReply(known[key] ?? {}, components, key)]),
  ])
}

function sampleOf(schema: JsonSchema, source: Source, name: string): unknown {
  const { $ref, allOf, type } = schema
  if (typeof $ref === 'string') return sampleOfComponent(componentNameOf($ref), source, name)
  const choices = (schema.anyOf ?? schema.oneOf) as readonly JsonSchema[] | undefined
  if (choices) return sampleOfChoice(choices, source, name)
  if (Array.isArray(allOf)) return Object.assign({}, ...allOf.map((part: JsonSchema) => sampleOf(part, source, name)))
  if ('const' in schema) return schema.const
  const types = Array.isArray(type) ? (type as string[]) : [String(type)]
  if (types.includes('null') && source.values[name] === null) return null
  if (Array.isArray(schema.enum)) return choose(schema.enum, source.values[name])
  return sampleOfType(types.find((one) => one !== 'null') ?? 'null', schema, source, name)
}

function sampleOfComponent(component: string, source: Source, name: string): unknown {
  const schema = source.components[component]
  if (!schema) throw new Error(`the schema ${component} does not exist`)
  const example = componentExamples[component]
  return example ? completeReply(example, schema, source.components) : sampleOf(schema, source, name)
}

/** The first choice that is not null, unless the property is usually null. */
function sampleOfChoice(choices: readonly JsonSchema[], source: Source, name: string): unknown {
  const isNullable = choices.some((one) => one.type === 'null')
  if (isNullable && source.values[name] === null) return null
  const [first] = choices.filter((one) => one.type !== 'null')
  return first ? sampleOf(first, source, name) : null
}

function sampleOfType(type: string, schema: JsonSchema, source: Source, name: string): unknown {
  const known = source.values[name]
  switch (type) {
    case 'object':
      return Object.fromEntries(
        Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).map(([key, property]) => [
          key,
          sampleOf(property, source, key),
        ]),
      )
    case 'array':
      return [sampleOf((schema.items ?? {}) as JsonSchema, source, name)]
    case 'boolean':
      return typeof known === 'boolean' ? known : true
    case 'integer':
    case 'number':
      return sampleNumber(schema, known)
    case 'string':
      return sampleText(schema, known)
    default:
      return null
  }
}

function sampleNumber({ minimum, maximum }: JsonSchema, known: unknown): number {
  const [min, max] = [Number(minimum ?? 0), Number(maximum ?? Number.MAX_SAFE_INTEGER)]
  return Math.min(max, Math.max(min, typeof known === 'number' ? known : sampleCount))
}

function sampleText({ format, pattern, minLength, maxLength }: JsonSchema, known: unknown): string {
  const text = typeof known === 'string' ? known : ''
  if (format === 'uuid') return text.length === sampleId.length ? text : sampleId
  if (format === 'date') return sampleTime.slice(0, 10)
  if (format === 'date-time') return text.endsWith('Z') ? text : sampleTime
  const expression = new RegExp(typeof pattern === 'string' ? pattern : '', 'u')
  const isValid = (one: string) =>
    expression.test(one) &&
    one.length >= Number(minLength ?? 1) &&
    one.length <= Number(maxLength ?? one.length) &&
    (format !== 'uri' || URL.canParse(one))
  return [text, ...texts].find(isValid) ?? ''
}

const choose = (options: readonly unknown[], wanted: unknown): unknown =>
  options.includes(wanted) ? wanted : options[0]
