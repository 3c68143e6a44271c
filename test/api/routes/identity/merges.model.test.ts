/**
 * Any order of signing up, signing in, linking, unlinking, merging, confirming and resetting, held against a rule book.
 */
import { randomUUID } from 'node:crypto'
import { Socket } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Refusal } from '../../../../api/http/refusals.ts'
import type { User } from '../../../../api/identity/access-tokens.ts'
import { sendMailLink } from '../../../../api/identity/mail-links.ts'
import { login, signup } from '../../../../api/routes/identity/accounts.ts'
import { verify } from '../../../../api/routes/identity/email-verification.ts'
import { confirm } from '../../../../api/routes/identity/merges.ts'
import { callback, start, unlink } from '../../../../api/routes/identity/oauth.ts'
import { reset } from '../../../../api/routes/identity/recovery.ts'
import type { Route } from '../../../../api/routes/route.ts'
import type { Services } from '../../../../api/services.ts'
import { lockUserByEmail } from '../../../../db/identity/users.ts'
import { OAuthDeniedError, type OAuthIdentity, type OAuthProvider } from '../../../../providers/oauth/provider.ts'
import {
  type Claim,
  type Expected,
  emptyModel,
  expected,
  type Model,
  type ModelIdentity,
  modelProviders,
  people,
  type Step,
} from '../../../support/accounts-model.ts'
import { startApi } from '../../../support/api.ts'
import { propertyRuns } from '../../../support/property-runs.ts'

const api = await startApi()

/** A provider whose codes say who came back. */
const candid = (name: 'twitch' | 'google'): OAuthProvider => ({
  name,
  authorizationUrl: async ({ state }) => new URL(`http://localhost/?state=${state}`),
  exchange: async (_, { code }) => ({
    identity: JSON.parse(code) as OAuthIdentity,
    tokens: { accessToken: 'a', refreshToken: null, expiresAt: null, scopes: [] },
  }),
  refresh: () => Promise.reject(new OAuthDeniedError()),
  revoke: () => Promise.resolve(),
})

/** The link in the mail that was sent last. */
const mailed = { token: '' }

/** Without the time that bcrypt takes: which text is whose password is all that matters here. */
const services: Services = {
  ...api.services,
  oauthProviders: new Map(modelProviders.map((name) => [name, candid(name)] as const)),
  mailer: {
    send: async (_sql, _userId, { link }) => {
      mailed.token = new URL(link).searchParams.get('token') ?? ''
    },
  },
  passwords: {
    hash: async (password) => `hash of ${password}`,
    matches: async (password, hash) => hash === `hash of ${password}`,
  },
}

interface Replied extends Record<string, unknown> {
  readonly status?: string
  readonly cp_access_jwt?: string
}

/** What a route answers, or the code that it refuses with. */
async function ask(
  route: Pick<Route, 'handle'>,
  { caller, params = {}, body = {} }: { caller?: User | undefined; params?: object; body?: object },
) {
  try {
    const request = {
      caller: caller && { ...caller, tokenExpiresAtSeconds: 0 },
      params: params as never,
      query: {},
      read: undefined,
      body: body as never,
      ip: '192.0.2.1',
      userAgent: '',
      bytes: Buffer.alloc(0),
      headers: {},
      requestId: '',
      incoming: { socket: new Socket() } as never,
    }
    return ((await route.handle({ ...request, header: () => undefined }, services)).body ?? {}) as Replied
  } catch (error) {
    if (error instanceof Refusal) return error.code
    throw error
  }
}

const addressOf = (person: string) => `${person}@example.com`
const passwordOf = (person: string) => `the password of ${person}`
const idOf = ({ person, nth }: Pick<ModelIdentity, 'person' | 'nth'>) => `${person}-${nth}`
const verifiedAddress = (person: string, claim: Claim) => (claim === 'own' ? addressOf(person) : null)

/** The service, and what became of it so far, in the model's numbers. */
function createWorld() {
  const users: string[] = []
  const sessions: User[] = []
  const merges: Replied[] = []

  const outcomeOf = async (reply: Replied | string): Promise<Expected> => {
    if (typeof reply === 'string') return reply
    if (reply.merge_token) merges.push(reply)
    if (!reply.cp_access_jwt) return reply.status ?? 'done'
    const user = await services.accessTokens.verify(reply.cp_access_jwt)
    if (!user) throw new Error('a token that is none')
    sessions.push(user)
    if (!users.includes(user.userId)) users.push(user.userId)
    return users.indexOf(user.userId)
  }

  const roundTrip = async (identity: ModelIdentity, claim: Claim, body: object, caller?: User) => {
    const params = { provider: identity.provider }
    const begun = await ask(start, { caller, params, body: { scopes: 'identity', ...body } })
    if (typeof begun === 'string') return begun
    const state = new URL(String(begun.authorization_url)).searchParams.get('state')
    const came: OAuthIdentity = {
      providerUserId: idOf(identity),
      verifiedEmail: verifiedAddress(identity.person, claim),
    }
    return ask(callback, { params, body: { code: JSON.stringify(came), state, binding: begun.binding } })
  }

  const act = async (step: Step, before: Model): Promise<Replied | string> => {
    switch (step.does) {
      case 'sign_up':
      case 'log_in': {
        const body = { email: addressOf(step.address), password: passwordOf(step.person) }
        return ask(step.does === 'sign_up' ? signup : login, { body })
      }
      case 'confirm_address':
      case 'reset': {
        const isReset = step.does === 'reset'
        mailed.token = ''
        await api.sql.begin(async (tx) => {
          const userId = await lockUserByEmail(tx, addressOf(step.person))
          await sendMailLink(tx, services, isReset ? 'reset_password' : 'verify_email', userId)
        })
        if (mailed.token === '') return 'none'
        const { token } = mailed
        return isReset
          ? ask(reset, { body: { token, password: passwordOf(step.person) } })
          : ask(verify, { body: { token } })
      }
      case 'sign_in':
        return roundTrip(step.identity, step.claim, { intent: 'sign_in' })
      case 'link': {
        const held = before.sessions.at(-1 - step.session)
        if (!held) return 'none'
        return roundTrip(
          { ...step.identity, person: held.person },
          step.claim,
          { intent: 'link' },
          sessions.at(-1 - step.session),
        )
      }
      case 'unlink':
        // An ended sign-in is refused before the handler runs.
        if (!before.sessions.at(-1 - step.session)?.alive) return 'none'
        return ask(unlink, { caller: sessions.at(-1 - step.session), params: { provider: step.provider } })
      case 'prove': {
        const id = merges.at(-1 - step.merge)?.merge_request_id
        return id ? roundTrip(step.identity, 'none', { intent: 'merge', merge_request_id: id }) : 'none'
      }
      case 'confirm': {
        const merge = merges.at(-1 - step.merge)
        const person = before.merges.at(-1 - step.merge)?.identity.person ?? ''
        if (!merge) return 'none'
        const typed = { password: passwordOf(person), guess: 'a guess', proof: undefined }[step.by]
        const body = { merge_token: merge.merge_token, password: typed }
        return ask(confirm, { params: { merge_request_id: merge.merge_request_id }, body })
      }
      case 'expire':
        await api.sql`
          update merge_requests set expires_at = now() where id = ${String(merges.at(-1 - step.merge)?.merge_request_id ?? randomUUID())}`
        return 'done'
    }
  }

  return {
    perform: async (step: Step, before: Model) => outcomeOf(await act(step, before)),
    /** All accounts in the form of the model. */
    accounts: async () => {
      const rows = await api.sql`
        select u.id, u.email, u.email_verified_at is not null as verified, u.password_hash as password, array(
          select provider || '/' || provider_user_id || case when provider_verified_email is null then '' else ' verified' end
          from user_oauth_accounts a where a.user_id = u.id order by 1) as identities
        from users u`
      return rows
        .map(({ id, ...row }) => ({ account: users.indexOf(id), ...row }))
        .sort((a, b) => a.account - b.account)
    },
  }
}

const asRows = ({ accounts }: Model) =>
  accounts.map(({ address, verified, password, identities }, account) => ({
    account,
    email: address && addressOf(address),
    verified,
    password: password && `hash of ${passwordOf(password)}`,
    identities: identities
      .map((linked) => `${linked.provider}/${idOf(linked)}${linked.isVerified ? ' verified' : ''}`)
      .sort(),
  }))

/** Invariants of every order of steps, independent of the model. */
function expectSafe({ accounts }: Model): void {
  const identities = accounts.flatMap((account) =>
    account.identities.map((linked) => `${linked.provider}/${idOf(linked)}`),
  )
  expect(new Set(identities).size).toBe(identities.length)
  for (const { address, verified, onlyConfirmed, password, identities } of accounts) {
    expect(identities.filter((linked) => linked.isVerified && (linked.person !== address || !verified))).toEqual([])
    // The person who created the account may still have access and may link others, until a reset.
    if (onlyConfirmed) continue
    const holders = new Set([...identities.map((linked) => linked.person), ...(password && address ? [password] : [])])
    expect(holders.size).toBe(1)
    if (verified) expect([...holders]).toEqual([address])
  }
}

const person = fc.constantFrom(...people)
const provider = fc.constantFrom(...modelProviders)
const nth = fc.constantFrom(0 as const, 0 as const, 0 as const, 1 as const)
const claim = fc.constantFrom<Claim>('own', 'own', 'own', 'none', ...people)
const age = fc.constantFrom(0, 0, 0, 1, 2)
const identity = fc.record({ provider, person, nth })
const confirming = fc.record({
  does: fc.constant('confirm' as const),
  merge: age,
  by: fc.constantFrom('password' as const, 'proof' as const, 'proof' as const, 'guess' as const),
})

/** Weighted so that merges come about, and are decided while they are the newest. */
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ does: fc.constantFrom('sign_up' as const, 'log_in' as const), person, address: person }),
  fc.record({ does: fc.constantFrom('confirm_address' as const, 'reset' as const), person }),
  { weight: 4, arbitrary: fc.record({ does: fc.constant('sign_in' as const), identity, claim }) },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constant('link' as const),
      session: age,
      identity: fc.record({ provider, nth }),
      claim,
    }),
  },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('unlink' as const), session: age, provider }) },
  { weight: 4, arbitrary: fc.record({ does: fc.constant('prove' as const), merge: age, identity }) },
  { weight: 4, arbitrary: confirming },
  fc.record({ does: fc.constant('expire' as const), merge: age }),
)

/**
 * From nothing, from where a merge waits for a password or for the owner's Twitch, from where the owner of an address
 * has confirmed a stranger's account, or from where a provider has come to vouch for an address late.
 */
const beginning = fc.constantFrom<Step[]>(
  [],
  [
    { does: 'sign_up', person: 'ann', address: 'ann' },
    { does: 'link', session: 0, identity: { provider: 'twitch', nth: 0 }, claim: 'own' },
    { does: 'sign_in', identity: { provider: 'google', person: 'ann', nth: 0 }, claim: 'own' },
  ],
  [
    { does: 'sign_up', person: 'eve', address: 'ann' },
    { does: 'confirm_address', person: 'ann' },
    { does: 'link', session: 0, identity: { provider: 'twitch', nth: 0 }, claim: 'none' },
  ],
  [
    { does: 'sign_up', person: 'ann', address: 'ann' },
    { does: 'link', session: 0, identity: { provider: 'twitch', nth: 0 }, claim: 'none' },
    { does: 'sign_in', identity: { provider: 'twitch', person: 'ann', nth: 0 }, claim: 'own' },
  ],
)
const steps = fc.tuple(beginning, fc.array(anyStep, { minLength: 10, maxLength: 50 })).map((parts) => parts.flat())

test('every identity has one account, every account only its owner, and every account a sign-in method', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (taken) => {
      await api.sql`truncate users cascade`
      const world = createWorld()
      let model = emptyModel
      for (const step of taken) {
        const [after, outcome] = expected(model, step)
        expect(await world.perform(step, model), JSON.stringify(step)).toBe(outcome)
        model = after
        expectSafe(model)
      }
      expect(await world.accounts()).toEqual(asRows(model))
    }),
    { numRuns: propertyRuns(10, 60) },
  )
})
