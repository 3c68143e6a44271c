/** What signs in and acts: a browser at the site, or a plugin, which chooses its own name. */
export interface Client {
  readonly kind: 'web' | 'plugin'
  /** For people to read. Nothing follows from it: a plugin may be called as browsers are. */
  readonly name: string
}
