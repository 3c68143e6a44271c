/** The client of an auth session: a browser on the site, or a plugin, which chooses its own name. */
export interface Client {
  readonly kind: 'web' | 'plugin'
  /** For display only; a plugin may choose any name, including `web`. */
  readonly name: string
}
