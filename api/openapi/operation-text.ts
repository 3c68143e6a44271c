/** What the reference says about an operation beyond its declaration. */

export interface Example {
  readonly summary: string
  readonly value: unknown
}

export type Examples = Readonly<Record<string, Example>>

export interface OperationText {
  /** The operation id: a verb and its object. Clients are generated from it, so it never changes. */
  readonly id: string
  /** Markdown: what it does, when it refuses, whether repeating is safe. */
  readonly description: string
  /** Values of the request's body, by name. Clients of the reference send the first one. */
  readonly requests?: Examples
  /** Bodies of replies, by status and name. */
  readonly replies?: Readonly<Record<number, Examples>>
  /** Headers that replies have beside those of every operation, by status. */
  readonly replyHeaders?: Readonly<Record<number, readonly 'Idempotent-Replayed'[]>>
  /** Optional request headers, with their descriptions. */
  readonly headers?: Readonly<Record<string, string>>
}

/** By method and path below the base path, such as `POST /relay/start`. */
export type OperationTexts = Readonly<Record<string, OperationText>>
