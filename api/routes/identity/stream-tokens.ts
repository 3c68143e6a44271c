/** Replacement of stream tokens. The contract reserves the route, which replies 501 `not_available`. */
import { Refusal } from '../../http/refusals.ts'
import { route } from '../route.ts'

export const regenerate = route.user({
  id: 'regenerateStreamToken',
  summary: 'Replace the stream token',
  description: 'Reserved. Always 501 `not_available`.',
  answers: {},
  refuses: ['not_available'],
  handle: () => {
    throw new Refusal('not_available')
  },
})
