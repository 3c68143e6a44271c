/** The lines of the list of routes: what they add to declarations, and what the compiler refuses. */
import { expect, test } from 'vitest'
import { z } from 'zod'
import { noContent } from '../../../api/http/replies.ts'
import { route } from '../../../api/routes/route.ts'
import {
  countedByHandler,
  get,
  operator,
  uncounted,
  user,
  userOrApp,
  userOrAppCheckedByHandler,
} from '../../../api/routes/surface.ts'

const text = { id: 'getThing', summary: 'Show a thing', description: 'A thing of the user.' }
const parts = { ...text, answers: { 204: null }, refuses: [], handle: noContent }
const things = route.user(parts)
const thing = route.userOrApp({ ...parts, params: z.object({ id: z.string() }) })

test('a line adds to a declaration what it says of method, path, caller and limit', () => {
  expect(get('/things', user, 'usage', things)).toEqual({
    ...parts,
    method: 'GET',
    path: '/things',
    caller: 'user',
    limit: 'usage',
  })
  expect(
    get('/things/{id}', userOrAppCheckedByHandler('relay:control'), countedByHandler('usage'), thing),
  ).toMatchObject({
    caller: 'user_or_app',
    scope: 'relay:control',
    isSignInCheckedByHandler: true,
    limit: 'usage',
    isCountedByHandler: true,
  })
  expect(get('/things', user, uncounted, things)).not.toHaveProperty('limit')
})

test('the compiler refuses a line with another caller, path parameter or limit than its declaration or the configuration has', () => {
  // @ts-expect-error The handler expects a user.
  get('/things', operator, uncounted, things)
  // @ts-expect-error The declaration has no schema for the parameter.
  get('/things/{id}', user, uncounted, things)
  // @ts-expect-error The path lacks the parameter.
  get('/things', userOrApp('relay:control'), uncounted, thing)
  // @ts-expect-error The parameter has another name.
  get('/things/{name}', userOrApp('relay:control'), uncounted, thing)
  // @ts-expect-error No such limit is configured.
  get('/things', user, 'things', things)
})

test('the compiler refuses a declaration without a text for the API reference', () => {
  const { description, ...undescribed } = parts
  // @ts-expect-error It lacks the description.
  route.user(undescribed)
  const { id, ...unnamed } = parts
  // @ts-expect-error It lacks the operation id.
  route.user(unnamed)
})
