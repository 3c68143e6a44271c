/** Plugin logins in any order of what can happen to them, against a model made of the contract's words alone. */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type ErrorBody, startApi, type TokenSet } from '../../../support/api.ts'
import { propertyRuns } from '../../../support/property-runs.ts'

const api = await startApi()
const people = [await api.given.user(), await api.given.user()] as const

interface Attempt {
  status: 'pending' | 'approved' | 'denied' | 'consumed'
  /** Who decided it, by their place among the people. */
  decidedBy?: number
  age: number
  /** Seconds; undefined before the first poll. */
  sincePoll?: number
}
type Model = Attempt[]

interface Started {
  readonly login_attempt_id: string
  readonly poll_token: string
  /** A client name of its own, by which its sign-ins are found. */
  readonly name: string
}
type Real = Started[]

const startOne = async (): Promise<Started> => {
  const name = randomUUID()
  const { body } = await api.post<Omit<Started, 'name'>>('/auth/plugin/login/start', { client_name: name })
  return { login_attempt_id: body.login_attempt_id, poll_token: body.poll_token, name }
}
const ask = async (path: string, body?: object, bearer = '') => {
  const answer = await api.post<Partial<TokenSet & ErrorBody> & { status?: string }>(
    `/auth/plugin/login${path}`,
    body,
    bearer ? { bearer } : {},
  )
  return [answer.status, answer.body.error?.code ?? answer.body.status]
}

/** Each attempt opened at most one auth session, for the user who approved it. */
async function expectAgreement(model: Readonly<Model>, real: Real): Promise<void> {
  for (const [index, { name }] of real.entries()) {
    const signIns = await api.sql`select user_id from auth_sessions where client = ${name}`
    const { status, decidedBy } = model[index] as Attempt
    expect(signIns.map((row) => row.userId)).toEqual(status === 'consumed' ? [people[decidedBy ?? 0]?.userId] : [])
  }
}

/** What happens to one attempt, chosen by its number. */
abstract class Step implements fc.AsyncCommand<Model, Real> {
  constructor(readonly which: number) {}
  check = () => true
  abstract happen(attempt: Attempt, started: Started): Promise<void>
  async run(model: Model, real: Real): Promise<void> {
    const index = this.which % model.length
    await this.happen(model[index] as Attempt, real[index] as Started)
    await expectAgreement(model, real)
  }
}

class Start implements fc.AsyncCommand<Model, Real> {
  check = (model: Readonly<Model>) => model.length < 3
  toString = () => 'start'
  async run(model: Model, real: Real): Promise<void> {
    real.push(await startOne())
    model.push({ status: 'pending', age: 0 })
  }
}

class Poll extends Step {
  override toString = () => `poll ${this.which}`
  async happen(attempt: Attempt, { name, ...started }: Started): Promise<void> {
    // As the model has it, whatever time this machine has taken meanwhile.
    await api.sql`
      update login_attempts set last_polled_at = now() - make_interval(secs => ${attempt.sincePoll ?? 0})
      where id = ${started.login_attempt_id} and last_polled_at is not null`
    const expected = pollOf(attempt)
    expect(await ask('/poll', started)).toEqual(expected)
    if (expected[0] !== 200) return
    attempt.sincePoll = 0
    if (attempt.status === 'approved') attempt.status = 'consumed'
  }
}

function pollOf({ status, age, sincePoll }: Attempt): [number, string] {
  if (age >= 300) return [410, 'attempt_expired']
  if (status === 'consumed') return [410, 'attempt_consumed']
  if (status === 'denied') return [403, 'attempt_denied']
  if (status === 'approved') return [200, 'complete']
  return sincePoll !== undefined && sincePoll < 1 ? [429, 'rate_limited'] : [200, 'pending']
}

class PollWithWrongToken extends Step {
  override toString = () => `poll ${this.which} with a wrong token`
  async happen(_: Attempt, { login_attempt_id }: Started): Promise<void> {
    expect(await ask('/poll', { login_attempt_id, poll_token: 'wrong' })).toEqual([404, 'not_found'])
  }
}

class Decide extends Step {
  constructor(
    which: number,
    readonly decision: 'approve' | 'deny',
    readonly person: number,
  ) {
    super(which)
  }
  override toString = () => `${this.decision} ${this.which} by ${this.person}`
  async happen(attempt: Attempt, { login_attempt_id }: Started): Promise<void> {
    const bearer = people[this.person]?.bearer
    const expected = decisionOf(attempt, this.decision, this.person)
    expect(await ask(`/attempts/${login_attempt_id}/${this.decision}`, undefined, bearer)).toEqual(expected)
    if (expected[0] !== 204) return
    if (this.decision === 'deny') attempt.status = 'denied'
    else if (attempt.status === 'pending') attempt.status = 'approved'
    attempt.decidedBy ??= this.person
  }
}

function decisionOf({ status, age, decidedBy }: Attempt, decision: 'approve' | 'deny', person: number) {
  if (decidedBy !== undefined && decidedBy !== person) return [404, 'not_found']
  if (age >= 300) return [410, 'attempt_expired']
  if (decision === 'approve' && status === 'denied') return [403, 'attempt_denied']
  if (decision === 'deny' && status === 'consumed') return [410, 'attempt_consumed']
  return [204, undefined]
}

class PassTime implements fc.AsyncCommand<Model, Real> {
  constructor(readonly seconds: number) {}
  check = () => true
  toString = () => `pass ${this.seconds} s`
  async run(model: Model, real: Real): Promise<void> {
    for (const attempt of model) {
      attempt.age += this.seconds
      if (attempt.sincePoll !== undefined) attempt.sincePoll += this.seconds
    }
    await api.sql`
      update login_attempts set created_at = created_at - make_interval(secs => ${this.seconds}),
        expires_at = expires_at - make_interval(secs => ${this.seconds})
      where id = any(${real.map(({ login_attempt_id }) => login_attempt_id)}::uuid[])`
  }
}

test('in any sequence of starts, polls, approvals, denials and waits no login issues tokens twice or too late', async () => {
  const which = fc.nat({ max: 2 })
  const poll = which.map((index) => new Poll(index))
  const decide = fc
    .tuple(which, fc.constantFrom('approve', 'approve', 'deny'), fc.constantFrom(0, 0, 0, 1))
    .map(([index, decision, person]) => new Decide(index, decision as 'approve' | 'deny', person))
  const commands = fc.commands(
    [
      fc.constant(new Start()),
      poll,
      poll,
      poll,
      decide,
      decide,
      which.map((index) => new PollWithWrongToken(index)),
      fc.constantFrom(2, 140, 160).map((seconds) => new PassTime(seconds)),
    ],
    { maxCommands: 14, size: 'max' },
  )
  await fc.assert(
    fc.asyncProperty(commands, async (steps) => {
      const real = [await startOne()]
      await fc.asyncModelRun(() => ({ model: [{ status: 'pending', age: 0 }] as Model, real }), steps)
    }),
    { numRuns: propertyRuns(30, 200) },
  )
})

test('concurrent polls, approvals and denials issue at most one token set', async () => {
  const act = fc.constantFrom('poll', 'poll', 'approve', 'approve by another', 'deny')
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 3, maxLength: 10 }), async (acts) => {
      const { name, ...attempt } = await startOne()
      const path = `/attempts/${attempt.login_attempt_id}`
      const answers = await Promise.all(
        acts.map((step) => {
          if (step === 'poll') return ask('/poll', attempt)
          if (step === 'deny') return ask(`${path}/deny`, undefined, people[0].bearer)
          return ask(`${path}/approve`, undefined, people[step === 'approve' ? 0 : 1].bearer)
        }),
      )
      for (const [status] of answers) expect([200, 204, 403, 404, 410, 429]).toContain(status)
      const completed = answers.filter(([, what]) => what === 'complete').length
      const [attemptRow] =
        await api.sql`select status, user_id from login_attempts where id = ${attempt.login_attempt_id}`
      const signIns = await api.sql`select user_id from auth_sessions where client = ${name}`
      expect(signIns.map((row) => row.userId)).toEqual(attemptRow?.status === 'consumed' ? [attemptRow.userId] : [])
      expect(completed).toBe(signIns.length)
    }),
    { numRuns: propertyRuns(12, 60) },
  )
})
