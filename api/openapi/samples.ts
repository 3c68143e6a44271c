/** Examples made from JSON Schemas: the same value for the same schema at any time. */
import { sampleValues, valuesOfComponents } from './sample-values.ts'
import { componentNameOf, type JsonSchema, type SchemaComponents } from './schemas.ts'

const texts = ['text', 'default', 'local', '1042', 'https://example.com/page', 'streamer@example.com', 'sub_1042']
const sampleId = '5d3f0c62-8a1e-4b7d-9c05-2f6e1a7b4d90'
const sampleTime = '2026-08-01T18:30:00.000Z'
const sampleCount = 3

/** @param name the property that has the value; it selects a realistic one. */
export function sampleOf(schema: JsonSchema, components: SchemaComponents, name = ''): unknown {
  const { $ref, allOf, type } = schema
  if (typeof $ref === 'string') return sampleOfComponent(componentNameOf($ref), components, name)
  const choices = (schema.anyOf ?? schema.oneOf) as readonly JsonSchema[] | undefined
  if (choices) return sampleOfChoice(choices, components, name)
  if (Array.isArray(allOf))
    return Object.assign({}, ...allOf.map((part: JsonSchema) => sampleOf(part, components, name)))
  if ('const' in schema) return schema.const
  const types = Array.isArray(type) ? (type as string[]) : [String(type)]
  if (types.includes('null') && sampleValues[name] === null) return null
  if (Array.isArray(schema.enum)) return choose(schema.enum, sampleValues[name])
  return sampleOfType(types.find((one) => one !== 'null') ?? 'null', schema, components, name)
}

function sampleOfComponent(component: string, components: SchemaComponents, name: string): unknown {
  const schema = components[component]
  if (!schema) throw new Error(`the schema ${component} does not exist`)
  return valuesOfComponents[component] ?? sampleOf(schema, components, name)
}

/** The first choice that is not null, unless the property is usually null. */
function sampleOfChoice(choices: readonly JsonSchema[], components: SchemaComponents, name: string): unknown {
  const isNullable = choices.some((one) => one.type === 'null')
  if (isNullable && sampleValues[name] === null) return null
  const [first] = choices.filter((one) => one.type !== 'null')
  return first ? sampleOf(first, components, name) : null
}

function sampleOfType(type: string, schema: JsonSchema, components: SchemaComponents, name: string): unknown {
  const known = sampleValues[name]
  switch (type) {
    case 'object':
      return Object.fromEntries(
        Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).map(([key, property]) => [
          key,
          sampleOf(property, components, key),
        ]),
      )
    case 'array':
      return [sampleOf((schema.items ?? {}) as JsonSchema, components, name)]
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

function sampleText({ format, pattern, maxLength }: JsonSchema, known: unknown): string {
  if (format === 'uuid') return typeof known === 'string' && known.length === sampleId.length ? known : sampleId
  if (format === 'date-time') return typeof known === 'string' && known.endsWith('Z') ? known : sampleTime
  const expression = new RegExp(typeof pattern === 'string' ? pattern : '', 'u')
  const isValid = (text: string) =>
    expression.test(text) && text.length <= Number(maxLength ?? text.length) && (format !== 'uri' || URL.canParse(text))
  return [...(typeof known === 'string' ? [known] : []), ...texts].find(isValid) ?? ''
}

const choose = (options: readonly unknown[], wanted: unknown): unknown =>
  options.includes(wanted) ? wanted : options[0]
