/** Properties of refresh tokens: at most one is live, after any sequence. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type GivenUser, startApi, type TokenSet } from '../../support/api.ts'
import { propertyRuns } from '../../support/property-runs.ts'

const api = await startApi()
const user = await api.given.user()

/** A model of a token lineage according to the contract. Tokens are numbered in the order of issue. */
interface Model {
  alive: boolean
  tokens: Array<{ secondsLeft: number; replacedSecondsAgo?: number; successor?: number; superseded?: boolean }>
}
interface Real {
  signIn: GivenUser
  tokens: string[]
}

const days30 = 30 * 86_400

function isHonoured(model: Model, index: number): boolean {
  const token = model.tokens[index]
  if (!model.alive || !token || token.superseded) return false
  if (token.replacedSecondsAgo === undefined) return token.secondsLeft > 0
  const successor = model.tokens[token.successor ?? -1]
  return token.replacedSecondsAgo < 15 && successor?.replacedSecondsAgo === undefined && !successor?.superseded
}

async function expectAgreement(model: Model, { signIn }: Real): Promise<void> {
  const live = await api.sql`
    select from refresh_tokens t join auth_sessions s on s.id = t.auth_session_id
    where s.id = ${signIn.authSessionId} and s.revoked_at is null and t.replaced_at is null and t.superseded_at is null`
  expect(live.length).toBe(model.alive ? 1 : 0)
  expect((await api.get('/auth/sessions', { bearer: signIn.bearer })).status).toBe(model.alive ? 200 : 401)
}

class Refresh implements fc.AsyncCommand<Model, Real> {
  constructor(readonly back: number) {}
  check = (model: Readonly<Model>) => this.back < model.tokens.length
  toString = () => `refresh(${this.back} before the newest)`
  async run(model: Model, real: Real): Promise<void> {
    const index = model.tokens.length - 1 - this.back
    const honoured = isHonoured(model, index)
    const answer = await api.post<TokenSet>('/auth/refresh', { refresh_token: real.tokens[index] })
    expect(answer.status).toBe(honoured ? 200 : 401)
    const token = model.tokens[index]
    if (honoured && token) {
      const earlier = model.tokens[token.successor ?? -1]
      if (earlier) earlier.superseded = true
      token.successor = model.tokens.length
      token.replacedSecondsAgo ??= 0
      model.tokens.push({ secondsLeft: days30 })
      real.tokens.push(answer.body.refresh_token)
    } else if (token?.replacedSecondsAgo !== undefined || token?.superseded) model.alive = false
    await expectAgreement(model, real)
  }
}

class Logout implements fc.AsyncCommand<Model, Real> {
  check = (model: Readonly<Model>) => model.alive
  toString = () => 'logout'
  async run(model: Model, real: Real): Promise<void> {
    expect((await api.post('/auth/logout', undefined, { bearer: real.signIn.bearer })).status).toBe(204)
    model.alive = false
    await expectAgreement(model, real)
  }
}

class PassTime implements fc.AsyncCommand<Model, Real> {
  constructor(readonly seconds: number) {}
  check = () => true
  toString = () => `pass ${this.seconds} s`
  async run(model: Model, { signIn }: Real): Promise<void> {
    for (const token of model.tokens) {
      token.secondsLeft -= this.seconds
      if (token.replacedSecondsAgo !== undefined) token.replacedSecondsAgo += this.seconds
    }
    await api.sql`
      update refresh_tokens set expires_at = expires_at - make_interval(secs => ${this.seconds}),
        replaced_at = replaced_at - make_interval(secs => ${this.seconds})
      where auth_session_id = ${signIn.authSessionId}`
  }
}

test('after any sequence of refreshes, replays, lost replies and logouts at most one token is live', async () => {
  // Prefers the newest tokens and few logouts, since a lineage that ends at once tests little.
  const refresh = fc.constantFrom(0, 0, 0, 1, 1, 1, 2, 3).map((back) => new Refresh(back))
  const passTime = fc.constantFrom(4, 11, 16, days30 - 3600, days30).map((seconds) => new PassTime(seconds))
  const logout = fc.constant(new Logout())
  const commands = fc.commands([refresh, refresh, refresh, refresh, refresh, passTime, passTime, logout], {
    maxCommands: 12,
    size: 'max',
  })
  await fc.assert(
    fc.asyncProperty(commands, async (steps) => {
      const signIn = await api.given.signIn(user)
      const setup = () => ({
        model: { alive: true, tokens: [{ secondsLeft: days30 }] } as Model,
        real: { signIn, tokens: [signIn.refreshToken] },
      })
      await fc.asyncModelRun(setup, steps)
    }),
    { numRuns: propertyRuns(30, 200) },
  )
})

test('with any number of concurrent refreshes and logouts at most one token is live', async () => {
  const burst = fc.array(fc.constantFrom('first', 'second', 'logout'), { minLength: 2, maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(burst, async (requests) => {
      const signIn = await api.given.signIn(user)
      const second = await api.post<TokenSet>('/auth/refresh', { refresh_token: signIn.refreshToken })
      const tokens = { first: signIn.refreshToken, second: second.body.refresh_token }
      const answers = await Promise.all(
        requests.map((what) =>
          what === 'logout'
            ? api.post('/auth/logout', undefined, { bearer: signIn.bearer })
            : api.post('/auth/refresh', { refresh_token: tokens[what as 'first' | 'second'] }),
        ),
      )
      for (const { status } of answers) expect([200, 204, 401]).toContain(status)
      const [row] = await api.sql`
        select s.revoked_at is null as alive, count(*) filter (where t.replaced_at is null and t.superseded_at is null)::int as live
        from auth_sessions s join refresh_tokens t on t.auth_session_id = s.id where s.id = ${signIn.authSessionId} group by s.id`
      expect(row?.live).toBe(1)
      if (requests.includes('logout')) expect(row?.alive).toBe(false)
    }),
    { numRuns: propertyRuns(8, 30) },
  )
})
