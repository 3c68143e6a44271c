/** What a route says about itself in the API reference. */

export interface Example {
  readonly summary: string
  readonly value: unknown
}

/** Values of a body by name. Clients of the reference show and send the first one. */
export type Examples = Readonly<Record<string, Example>>

export interface OperationExamples {
  readonly requests?: Examples
  /** By status. */
  readonly replies?: Readonly<Record<number, Examples>>
}

export interface OperationText {
  /** The operation id: a verb and its object. Clients are generated from it, so it never changes. */
  readonly id: string
  /** At most 80 characters, without a period. */
  readonly summary: string
  /** Markdown: what it does, when it refuses, whether repeating is safe. */
  readonly description: string
  /** Where they say more than the schemas. The tests compare them with the schemas. */
  readonly examples?: OperationExamples
}
