/**
 * JSON Schemas of the OpenAPI document. Schemas with an `id`, given by `meta`, become components that are referenced.
 */
import { z } from 'zod'

export type JsonSchema = Readonly<Record<string, unknown>>

export interface SchemaConverter {
  convert(schema: z.ZodType, io?: 'input' | 'output'): JsonSchema
  /** The components that the converted schemas refer to, by their names. */
  readonly components: Readonly<Record<string, JsonSchema>>
}

const componentPath = '#/components/schemas/'

export function createSchemaConverter(): SchemaConverter {
  const components: Record<string, JsonSchema> = {}

  const addComponent = (name: string, component: JsonSchema) => {
    const text = JSON.stringify(component)
    if (JSON.stringify(components[name] ?? component) !== text)
      throw new Error(`the schema ${name} differs between requests and replies: do not give it an id`)
    components[name] = component
  }

  return {
    components,
    convert(schema, io = 'output') {
      const { $schema, $defs = {}, id, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
      for (const [name, definition] of Object.entries($defs)) {
        const { id: _, ...component } = referToComponents(definition) as Record<string, unknown>
        addComponent(name, component)
      }
      return referToComponents(rest) as JsonSchema
    },
  }
}

/** Replaces the references within one schema by references to the components of the document. */
function referToComponents(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(referToComponents)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === '$ref' ? String(inner).replace('#/$defs/', componentPath) : referToComponents(inner),
    ]),
  )
}
