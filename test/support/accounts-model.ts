/** A model of accounts, sign-ins and merges: the expected result of each step, independent of the implementation. */

export const people = ['ann', 'eve'] as const
export type Person = (typeof people)[number]
export const modelProviders = ['twitch', 'google'] as const
export type ModelProvider = (typeof modelProviders)[number]

/** An account at a provider. Each person may have two per provider. */
export interface ModelIdentity {
  readonly provider: ModelProvider
  readonly person: Person
  readonly nth: 0 | 1
}

/** The address that the provider returns: none, the person's own and verified, or anyone's and unverified. */
export type Claim = 'none' | 'own' | Person

/** Refers to sign-ins and merges by age: 0 is the newest one. */
export type Step =
  | { readonly does: 'sign_up' | 'log_in'; readonly person: Person; readonly address: Person }
  /** With the link in an email to the person's address, even if another person created the account. */
  | { readonly does: 'confirm_address' | 'reset'; readonly person: Person }
  | { readonly does: 'sign_in'; readonly identity: ModelIdentity; readonly claim: Claim }
  | {
      readonly does: 'link'
      readonly session: number
      readonly identity: Omit<ModelIdentity, 'person'>
      readonly claim: Claim
    }
  | { readonly does: 'unlink'; readonly session: number; readonly provider: ModelProvider }
  | { readonly does: 'prove'; readonly merge: number; readonly identity: ModelIdentity }
  | { readonly does: 'confirm'; readonly merge: number; readonly by: 'password' | 'guess' | 'proof' }
  | { readonly does: 'expire'; readonly merge: number }

export interface LinkedModelIdentity extends ModelIdentity {
  /** Whether its provider has verified the account's address. */
  readonly isVerified: boolean
}

export interface ModelAccount {
  /** The owner of its address; null for none. */
  readonly address: Person | null
  readonly verified: boolean
  /** The address is verified by email only: the person who created the account may still have access. */
  readonly onlyConfirmed: boolean
  /** The person who knows its password; null for none. */
  readonly password: Person | null
  readonly identities: readonly LinkedModelIdentity[]
}

interface ModelMerge {
  readonly account: number
  readonly identity: ModelIdentity
  readonly provedBy: ModelProvider | null
  readonly failed: number
  readonly state: 'open' | 'expired' | 'confirmed' | 'gone'
}

export interface Model {
  readonly accounts: readonly ModelAccount[]
  readonly sessions: readonly { readonly account: number; readonly person: Person; readonly alive: boolean }[]
  readonly merges: readonly ModelMerge[]
}

export const emptyModel: Model = { accounts: [], sessions: [], merges: [] }

/** The number of the account that is signed in to, or the status or error code of the response. */
export type Expected = number | string

type After = readonly [Model, Expected]

export const isSame = (a: ModelIdentity, b: ModelIdentity): boolean =>
  a.provider === b.provider && a.person === b.person && a.nth === b.nth

const ownerOf = ({ accounts }: Model, identity: ModelIdentity): number =>
  accounts.findIndex((account) => account.identities.some((known) => isSame(known, identity)))

const change = <Item>(items: readonly Item[], at: number, changed: Partial<Item>): Item[] =>
  items.map((item, index) => (index === at ? { ...item, ...changed } : item))

const enter = (model: Model, account: number, person: Person): After => [
  { ...model, sessions: [...model.sessions, { account, person, alive: true }] },
  account,
]

const add = (model: Model, account: ModelAccount, person: Person): After =>
  enter({ ...model, accounts: [...model.accounts, account] }, model.accounts.length, person)

export function expected(model: Model, step: Step): After {
  switch (step.does) {
    case 'sign_up':
      return model.accounts.some(({ address }) => address === step.address)
        ? [model, 'email_taken']
        : add(
            model,
            { address: step.address, verified: false, onlyConfirmed: false, password: step.person, identities: [] },
            step.person,
          )
    case 'log_in': {
      const account = model.accounts.findIndex(({ address }) => address === step.address)
      const known = model.accounts[account]?.password === step.person
      return known ? enter(model, account, step.person) : [model, 'invalid_credentials']
    }
    case 'confirm_address': {
      const account = model.accounts.findIndex(({ address, verified }) => address === step.person && !verified)
      if (account < 0) return [model, 'none']
      return [{ ...model, accounts: change(model.accounts, account, { verified: true, onlyConfirmed: true }) }, 'done']
    }
    case 'reset':
      return reset(model, step.person)
    case 'sign_in':
      return signIn(model, step.identity, step.claim)
    case 'link':
      return link(model, step)
    case 'unlink':
      return unlink(model, step)
    case 'prove':
      return prove(model, step)
    case 'confirm':
      return confirm(model, step)
    case 'expire':
      return expire(model, step)
  }
}

/** A provider-verified address counts if it is the account's own, and verifies that. */
function verifyByProvider(model: Model, at: number, identity: ModelIdentity, claim: Claim): Model {
  const account = model.accounts[at]
  if (!account || claim !== 'own' || account.address !== identity.person) return model
  const identities = account.identities.map((known) =>
    isSame(known, identity) ? { ...known, isVerified: true } : known,
  )
  return { ...model, accounts: change(model.accounts, at, { identities, verified: true }) }
}

/** Removes everyone's access except that of the address's owner: sign-ins, merges and unverified identities. */
function secureForOwner(model: Model, at: number, changed: Pick<ModelAccount, 'password'>): Model {
  const identities = model.accounts[at]?.identities.filter(({ isVerified }) => isVerified) ?? []
  return {
    accounts: change(model.accounts, at, { ...changed, verified: true, onlyConfirmed: false, identities }),
    sessions: model.sessions.map((session) => (session.account === at ? { ...session, alive: false } : session)),
    merges: model.merges.map((merge) => (merge.account === at ? { ...merge, state: 'gone' } : merge)),
  }
}

function reset(model: Model, person: Person): After {
  const account = model.accounts.findIndex(({ address }) => address === person)
  return account < 0 ? [model, 'none'] : [secureForOwner(model, account, { password: person }), 'done']
}

function signIn(model: Model, identity: ModelIdentity, claim: Claim): After {
  const { person } = identity
  const owner = ownerOf(model, identity)
  if (owner >= 0) return enter(verifyByProvider(model, owner, identity, claim), owner, person)
  const mine = { onlyConfirmed: false, password: null, identities: [{ ...identity, isVerified: claim === 'own' }] }
  if (claim !== 'own') return add(model, { address: null, verified: false, ...mine }, person)
  const holder = model.accounts.findIndex(({ address }) => address === person)
  if (holder < 0) return add(model, { address: person, verified: true, ...mine }, person)
  if (model.accounts[holder]?.verified) {
    const merge: ModelMerge = { account: holder, identity, provedBy: null, failed: 0, state: 'open' }
    return [{ ...model, merges: [...model.merges, merge] }, 'merge_required']
  }
  const reclaimed = withIdentity(secureForOwner(model, holder, { password: null }), holder, identity)
  if (!reclaimed) throw new Error('an unverified account has a provider-verified identity')
  return enter(verifyByProvider(reclaimed, holder, identity, claim), holder, person)
}

/** The model with the identity linked to the account; undefined if that is not possible. */
function withIdentity(model: Model, at: number, identity: ModelIdentity): Model | undefined {
  const account = model.accounts[at]
  if (!account || ownerOf(model, identity) >= 0) return undefined
  if (account.identities.some(({ provider }) => provider === identity.provider)) return undefined
  const identities = [...account.identities, { ...identity, isVerified: false }]
  return { ...model, accounts: change(model.accounts, at, { identities }) }
}

function link(model: Model, { session, identity, claim }: Extract<Step, { does: 'link' }>): After {
  const held = model.sessions.at(-1 - session)
  if (!held) return [model, 'none']
  if (!held.alive) return [model, 'unauthorized']
  const whole = { ...identity, person: held.person }
  const joined = ownerOf(model, whole) === held.account ? model : withIdentity(model, held.account, whole)
  if (!joined) return [model, 'provider_already_linked']
  return [verifyByProvider(joined, held.account, whole, claim), 'linked']
}

function unlink(model: Model, { session, provider }: Extract<Step, { does: 'unlink' }>): After {
  const held = model.sessions.at(-1 - session)
  const account = held?.alive ? model.accounts[held.account] : undefined
  if (!held || !account) return [model, 'none']
  const identities = account.identities.filter((identity) => identity.provider !== provider)
  if (identities.length === account.identities.length) return [model, 'done']
  if (identities.length === 0 && !(account.password && account.address)) return [model, 'last_sign_in_method']
  const merges = model.merges.map((merge) =>
    merge.account === held.account && merge.provedBy === provider ? { ...merge, provedBy: null } : merge,
  )
  return [{ ...model, merges, accounts: change(model.accounts, held.account, { identities }) }, 'done']
}

function expire(model: Model, { merge: age }: Extract<Step, { does: 'expire' }>): After {
  const at = model.merges.length - 1 - age
  const isOpen = model.merges[at]?.state === 'open'
  return [isOpen ? { ...model, merges: change(model.merges, at, { state: 'expired' }) } : model, 'done']
}

const failedMax = 5

function prove(model: Model, { merge: age, identity }: Extract<Step, { does: 'prove' }>): After {
  const at = model.merges.length - 1 - age
  const merge = model.merges[at]
  if (!merge) return [model, 'none']
  if (merge.state === 'gone') return [model, 'not_found']
  if (merge.state !== 'open' || merge.failed > failedMax) return [model, 'merge_expired']
  return ownerOf(model, identity) === merge.account
    ? [{ ...model, merges: change(model.merges, at, { provedBy: identity.provider }) }, 'merge_required']
    : [{ ...model, merges: change(model.merges, at, { failed: merge.failed + 1 }) }, 'invalid_credentials']
}

function confirm(model: Model, { merge: age, by }: Extract<Step, { does: 'confirm' }>): After {
  const at = model.merges.length - 1 - age
  const merge = model.merges[at]
  if (!merge) return [model, 'none']
  if (merge.state === 'gone') return [model, 'not_found']
  if (merge.state === 'confirmed') return [model, 'token_invalid']
  if (merge.state === 'expired' || merge.failed > failedMax) return [model, 'merge_expired']
  const { person } = merge.identity
  if (by !== 'proof' && !(by === 'password' && model.accounts[merge.account]?.password === person))
    return [{ ...model, merges: change(model.merges, at, { failed: merge.failed + 1 }) }, 'invalid_credentials']
  if (by === 'proof' && !merge.provedBy) return [model, 'invalid_credentials']
  const after = withIdentity(model, merge.account, merge.identity)
  if (!after) return [model, 'provider_already_linked']
  const verified = verifyByProvider(after, merge.account, merge.identity, 'own')
  return enter({ ...verified, merges: change(model.merges, at, { state: 'confirmed' }) }, merge.account, person)
}
