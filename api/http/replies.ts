/** Replies of handlers. */

/** A body that is no JSON. */
export interface TextBody {
  /** With the charset. */
  readonly contentType: string
  readonly text: string
}

/** A body that is no text. */
export interface BytesBody {
  readonly contentType: string
  readonly bytes: Buffer
}

export interface Reply {
  readonly status: number
  readonly body?: object
  /** In place of a body of JSON. */
  readonly text?: TextBody
  /** In place of a body of JSON. */
  readonly content?: BytesBody
  readonly headers?: Readonly<Record<string, string>>
  /** Time in which the handler waited for an event on purpose. It does not count as duration of the request. */
  readonly waitedSeconds?: number
}

export const ok = (body: object): Reply => ({ status: 200, body })
export const created = (body: object): Reply => ({ status: 201, body })
export const accepted = (): Reply => ({ status: 202, body: {} })
export const noContent = (): Reply => ({ status: 204 })
