/** Leaving for a provider, and coming back from one. */
import { type ApiAnswer, refusalOf } from '../api.ts'
import { isTokenSet, signedIn } from '../cookies.ts'
import { localPath } from '../local-path.ts'
import type { PageAnswer, PageRoute, Visit } from '../page-route.ts'
import { carriedTrip, type Merge, mergeCookie, type Trip, tripCookie, tripOver } from './carried.ts'
import { problemPage } from './problem.tsx'
import { displayNames, providerNamed } from './providers.tsx'
import { problemOf } from './refusal-text.ts'

/** Fields: `intent` (`sign_in` or `link`), `next`, and for links `scopes`. */
export const start: PageRoute = {
  method: 'POST',
  path: '/oauth/:provider/start',
  caller: 'anyone',
  handle: (visit) => {
    const { params, form, isSignedIn } = visit
    const provider = providerNamed(params.provider)
    if (!provider) return problemPage('not_found')
    if (form.get('intent') !== 'link')
      return leaveFor(visit, { provider, intent: 'sign_in', next: localPath(form.get('next'), '/relays') })
    if (!isSignedIn) return { goTo: '/login?next=/account' }
    const scopes = form.get('scopes') === 'chat' ? 'chat' : 'identity'
    return leaveFor(visit, { provider, intent: 'link', next: '/account' }, { scopes })
  },
}

/** @param more what the api has to know besides. */
export async function leaveFor(visit: Visit, trip: Omit<Trip, 'binding'>, more: object = {}): Promise<PageAnswer> {
  type Started = { readonly authorization_url: string; readonly binding: string }
  const ask = trip.intent === 'link' ? visit.ask<Started> : visit.askAsNobody<Started>
  const { provider, intent } = trip
  const answer = await ask('POST', `/api/v1/auth/oauth/${provider}/start`, { intent, ...more })
  if (answer.status !== 201) return refused(answer, trip)
  const { authorization_url, binding } = answer.body
  const cookies = [tripCookie({ ...trip, binding })]
  return { leadTo: authorization_url, says: `Going to ${displayNames[provider]} …`, cookies }
}

/** What the api may answer to somebody who came back. */
type Arrived =
  | { readonly status: 'signed_in' }
  | { readonly status: 'linked' }
  | {
      readonly status: 'merge_required'
      readonly merge_request_id: string
      /** Only in the answer that begins a merge. */
      readonly merge_token?: string
      readonly sign_in_methods: Merge['methods']
    }

export const callback: PageRoute = {
  method: 'GET',
  path: '/oauth/:provider/callback',
  caller: 'anyone',
  // A provider sends the browser here. Who is signed in meanwhile is not known, and stays so unless this signs in.
  arrival: true,
  handle: async (visit) => {
    const { params, query, askAsNobody } = visit
    const provider = providerNamed(params.provider)
    if (!provider) return problemPage('not_found')
    const carried = carriedTrip(visit)
    const trip = carried?.provider === provider ? carried : undefined
    if (!trip || isRepeated(query)) return begunElsewhere
    // Whatever stands beside an error is no answer to go on with.
    if (query.has('error')) return notCompleted(query.get('error') === 'access_denied', trip)
    const [code, state, iss] = ['code', 'state', 'iss'].map((name) => query.get(name))
    if (!code || !state) return begunElsewhere
    const body = { code, state, binding: trip.binding, ...(iss ? { iss } : {}) }
    const answer = await askAsNobody<Arrived>('POST', `/api/v1/auth/oauth/${provider}/callback`, body)
    return answer.status === 200 ? arrived(answer, trip) : refused(answer, trip)
  },
}

/** No parameter may come twice (RFC 6749, 3.1): of two, one would be checked and the other one used. */
const isRepeated = (query: URLSearchParams): boolean =>
  ['error', 'code', 'state', 'iss'].some((name) => query.getAll(name).length > 1)

function arrived({ body }: ApiAnswer<Arrived>, { provider, intent, next }: Trip): PageAnswer {
  const name = displayNames[provider]
  if (body.status === 'linked')
    return { leadTo: '/account?done=linked', says: `${name} is linked.`, cookies: [tripOver] }
  if (body.status === 'signed_in') {
    if (!isTokenSet(body)) throw new Error('a sign-in came without tokens')
    return { leadTo: next, says: 'Signing you in …', cookies: [...signedIn(body), tripOver] }
  }
  const { merge_request_id: id, merge_token: token, sign_in_methods: methods } = body
  if (intent === 'merge' || token === undefined)
    return { leadTo: `/merge?proved=${provider}`, says: 'Going on …', cookies: [tripOver] }
  const cookies = [mergeCookie({ id, token, methods, provider, next }), tripOver]
  return { leadTo: '/merge', says: 'Going on …', cookies }
}

/** Where somebody goes to try again, by what they were about to do. */
const ways: Readonly<Record<Trip['intent'], (next: string) => { href: string; says: string }>> = {
  sign_in: (next) => ({ href: `/login?next=${encodeURIComponent(next)}`, says: 'Back to the sign-in' }),
  link: () => ({ href: '/account', says: 'Back to your account' }),
  merge: () => ({ href: '/merge', says: 'Back to linking' }),
}

/** The api's sentence, and the way on. */
function refused(answer: ApiAnswer, { provider, intent, next }: Omit<Trip, 'binding'>): PageAnswer {
  const { code } = refusalOf(answer)
  const says = (intent === 'link' && linkRefusals[code]?.(displayNames[provider])) || problemOf(answer).text
  return trouble({ title: 'That did not work', status: answer.status, says, way: ways[intent](next) })
}

const linkRefusals: Readonly<Record<string, (name: string) => string>> = {
  unauthorized: () => 'You were signed out meanwhile, so nothing was linked. Sign in and link again.',
  provider_already_linked: (name) =>
    `Nothing was linked: this ${name} account is linked to another account here, or yours has another one of ${name} already.`,
}

/** Any link can lead a browser here with an error, so none is a failure of ours or of the provider's, as a 5xx would be. */
function notCompleted(isDenial: boolean, { provider, intent, next }: Trip): PageAnswer {
  const name = displayNames[provider]
  const says = isDenial
    ? `You did not agree at ${name}, so nothing was done.`
    : `${name} could not complete it, so nothing was done. Try again in a moment.`
  return trouble({ title: 'Nothing was done', status: isDenial ? 200 : 400, says, way: ways[intent](next) })
}

const begunElsewhere = trouble({
  title: 'Start again in this browser',
  status: 400,
  says: 'This did not begin in this browser, or more than 10 minutes ago. Nothing was done: start it here once more.',
  way: { href: '/', says: 'Start again' },
})

interface Trouble {
  readonly title: string
  readonly status: number
  readonly says: string
  readonly way: { readonly href: string; readonly says: string }
}

function trouble({ title, status, says, way }: Trouble): PageAnswer {
  return {
    title,
    status,
    page: (
      <section class="card narrow">
        <h1>{title}</h1>
        <p role="alert">{says}</p>
        <a class="button second wide" href={way.href}>
          {way.says}
        </a>
      </section>
    ),
  }
}
