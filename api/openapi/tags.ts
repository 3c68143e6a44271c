/** The groups of operations in the reference. A path that no entry names belongs to the group of its longest prefix. */

interface Tag {
  readonly name: string
  readonly description: string
  /** Prefixes of paths below the base path. */
  readonly prefixes: readonly string[]
}

/** In the order of the reference. */
const allTags: readonly Tag[] = [
  {
    name: 'Sign-in',
    description:
      'Accounts with an email address and a password. A successful sign-in returns a token set: an access token of a few minutes and a refresh token that replaces itself at each use.',
    prefixes: ['/auth'],
  },
  {
    name: 'Plugin sign-in',
    description:
      'Sign-in of a plugin without a password: the plugin starts a login attempt and polls it, while the user approves it in the browser.',
    prefixes: ['/auth/plugin'],
  },
  {
    name: 'Connected apps',
    description:
      'Apps that act for an account with tokens of their own, such as the OBS source. They sign in with the authorization code flow; the addresses are in `/oauth/.well-known/openid-configuration`.',
    prefixes: ['/auth/apps', '/ingests'],
  },
  {
    name: 'Linked accounts',
    description: 'Sign-in with Twitch, Google and Discord, and linking of these accounts to an account.',
    prefixes: ['/auth/oauth', '/auth/merge'],
  },
  {
    name: 'Account',
    description: 'The account of the signed-in user: summary, auth sessions and activity.',
    prefixes: [
      '/auth/session',
      '/auth/sessions',
      '/auth/account',
      '/auth/activity',
      '/auth/audit',
      '/auth/password/change',
      '/auth/email/change',
      '/user',
    ],
  },
  {
    name: 'Relays',
    description:
      'Starting, watching and stopping relays. Each connection of an account has at most one live relay session.',
    prefixes: ['/relay', '/shared'],
  },
  {
    name: 'Live events',
    description: 'The state of relay sessions over a WebSocket, as an alternative to polling.',
    prefixes: ['/relay/ws'],
  },
  {
    name: 'Regions',
    description: 'Where relays can run, and whether there is room for another one.',
    prefixes: ['/relay/manifest', '/capacity'],
  },
  {
    name: 'Usage',
    description: 'Relay time that the plan includes and that the account has used.',
    prefixes: ['/usage'],
  },
  {
    name: 'Notifications',
    description: 'Which events an account is notified of, and where to.',
    prefixes: ['/notifications'],
  },
  {
    name: 'Billing',
    description: 'Plan, add-ons and payments at the billing provider.',
    prefixes: ['/billing'],
  },
  {
    name: 'Billing sandbox',
    description:
      'Outcomes that would happen at a real billing provider. These operations exist only with the billing provider `sandbox`.',
    prefixes: ['/billing/sandbox'],
  },
  {
    name: 'Relay agents',
    description: 'For the relays themselves, which report their health.',
    prefixes: ['/relay/health'],
  },
  {
    name: 'Operators',
    description: 'Administration. These operations exist only when an operator password is configured.',
    prefixes: ['/admin'],
  },
  {
    name: 'Service',
    description:
      'Incidents; and health, metrics and this document, which the API serves itself; the site serves only the document. Also the mailbox for development.',
    prefixes: ['/mailbox', '/incidents'],
  },
]

/** The name of the tag of a path. */
export function tagOf(path: string): string {
  const covers = (prefix: string) => path === prefix || path.startsWith(`${prefix}/`)
  const [nearest] = allTags
    .flatMap(({ name, prefixes }) => prefixes.filter(covers).map((prefix) => ({ name, prefix })))
    .toSorted((a, b) => b.prefix.length - a.prefix.length)
  if (!nearest) throw new Error(`no group in api/openapi/tags.ts has the path ${path}`)
  return nearest.name
}

/** As the document lists them. */
export const tags = allTags.map(({ name, description }) => ({ name, description }))
